#!/bin/sh
# Exits with 1 if the file still divides by zero.
! ssa-run "$1" --entry=main --in zeros:1x2x3x4,zeros:1x1x5x4,zeros:2,zeros:2 2>&1 | grep -q 'division of 0 by zero'
