//===- AttendKernel.h - The kernel of sparse_attend -------------*- C++ -*-===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// One kernel for both orders in which the rows of a tile share a list. A *cell* is a pair of key head and selection head; the
// rows of a list are its queries times the query heads of its cell. With query blocks that is the shared-list order, with one
// query a list it is head-packed; the tile is padded either way. An *item* is a batch, a cell, a list and a tile of its rows.
//
// An item may see keys of several *sources*, ops that are parts of one `merge` or `mix`: first all steps of one, then those of the next. Of a `merge`
// they have one softmax, of a `mix` one each.
//
// Keys come in steps of `tileKeys` slots. A slot is a place in the list, or in the range that the mask allows; its *number* is
// the token or summary that it stands for. Keys and values are gathered row by row into rings of tiles.
//
// With `mma_sync` all threads copy and multiply (AttendThreads.cpp). With `wgmma` the block has roles (AttendRoles.cpp): some warps copy, steps and items ahead
// of those that multiply. Where an output is too wide for these and values are keys, two groups of them take turns (AttendTurns.cpp).
// With `tcgen05` products are in tensor memory, and there are more roles (AttendTensorMemory.cpp); two blocks may make them together (AttendPair.cpp). Rows are stored in AttendStore.cpp,
// and outputs over other blocks are added in AttendForced.cpp.
//
//===----------------------------------------------------------------------===//

#ifndef SSA_LIB_CONVERSION_SSATOSSAGPU_ATTENDKERNEL_H
#define SSA_LIB_CONVERSION_SSATOSSAGPU_ATTENDKERNEL_H

#include "KeySlots.h"
#include "Merge.h"
#include "ScoreTiles.h"
#include "TileEmitter.h"
#include "ssa/IR/ForcedBlocks.h"

namespace mlir::ssa {

/// What of the plan depends on where keys come from.
struct AttendSource {
  mutable SparseAttendOp op; // whose accessors are not const
  std::optional<SelectionType> selection = {}; // of the lists that pass by
  int64_t queryBlock = 0;                      // of these lists; 0 if one serves all queries, or there is none
  int64_t stretches = 1;                       // of neighbours that the keys of a step are, see ScheduleAttr
  bool hasBoxes = false;                       // which are copied as boxes of tensors
  size_t numCaptured = 0;                      // values that its score region reads
};

/// The schedule, and what follows from it and from the types.
struct AttendPlan {
  SmallVector<AttendSource, 1> sources;
  Instruction instruction;
  ssa_gpu::Family family; // of products in registers
  int64_t tileRows, tileKeys, stages;
  int64_t querySlots, groups, valueParts, scoreSlots; // see ScheduleAttr
  bool takesTurns, keepsWeightsInKeys, keepsQueries, pair = false;
  int64_t weightSlots; // with tensor memory: tiles of weights
  int64_t itemSlots;   // items that are handed over at a time, with tensor memory or where groups take turns
  int64_t polynomials;            // of eight weights
  int64_t dim, valueDim, cells, group, queryBlock;
  bool isKeyOuter = false;
  Partials partials; // of key-outer
  int64_t split = 1; // parts of the steps of a tile
  int64_t memberWords = 0; // of a union, see ScheduleAttr
  int64_t rowsPerList = 0; // of a union, and where keys come first: of a list of the op
  bool partialsInQuads = false; // columns of partial outputs stand in the order in which threads have them
  std::optional<ForcedBlocks> forced = {}; // of key-outer: blocks that another kernel attends to, which adds the partial outputs to its own
  bool addsPartials = false;               // this is the other kernel, which sees `forced` blocks
  int64_t width;             // elements that a thread copies at a time
  bool valuesAreKeys;        // values are the first columns of keys: they are there once
  bool hasQueryBoxes;        // tiles of queries are copied as boxes
  bool gathers;              // rows that are no neighbours are gathered from a tensor of two dimensions
  int64_t rowsOfBox = 1;     // where keys come first: rows of a tile that are of one entry, which is a box of queries; 1 where these are no boxes
  int64_t threads, blocksPerSM;
  int64_t maxBlocks;         // of the grid
  const JoinArguments *join = nullptr; // what rows are part of, where the kernel makes the whole

  /// The first source: of unions, where keys come first, and with tensor memory there is no other.
  const AttendSource &first() const { return sources.front(); }
  const SelectionType &selection() const { return *first().selection; }
  /// Numbers that say which keys a step has.
  int64_t numbersOfStep() const {
    int64_t most = 0;
    for (const AttendSource &source : sources)
      most = std::max(most, source.stretches > 0 ? 2 * source.stretches : tileKeys);
    return most;
  }
  /// Numbers that say who takes part in a step.
  int64_t membersOfStep() const { return KeySlots::getMembersOfStep(memberWords, first().stretches, tileKeys); }
  /// Every source has a softmax of its own, and the sums of their outputs are wanted.
  bool hasSoftmaxes() const { return sources.size() > 1 && !join->isMerge(); }
  bool usesTensorMemory() const { return instruction == Instruction::tcgen05; }
  bool hasRoles() const { return instruction != Instruction::mma_sync; }
  /// Producers say which rows an item has: to divide would take those who multiply longer than to hear it. Beside the values of a score region it spills, but where they are
  /// partial outputs has to be heard.
  bool publishesItems() const {
    bool hasRegion = llvm::any_of(sources, [](const AttendSource &source) { return !source.op.getScore().empty(); });
    return hasRoles() && !usesTensorMemory() && !takesTurns && !isKeyOuter && (!hasRegion || addsPartials);
  }
  /// Products of different steps are not under way together: items of few steps have registers for taller tiles then, and wait less for their rows.
  bool isStepwise() const {
    constexpr int64_t many = 8;
    return isKeyOuter && !takesTurns && !usesTensorMemory() && (!hasRoles() || selection().getKeyBlock() < many * tileKeys);
  }
  /// A step is one entry of a union, and all rows of a warp are of one list: all take part in a step or none, and the softmax is left out. With
  /// tensor memory it is not: scores are hidden one by one.
  bool warpsHaveLists() const { return memberWords > 0 && first().stretches == 1 && groups == 1 && rowsPerList % 16 == 0 && !usesTensorMemory(); }
  /// All keys that an item has are one step.
  bool isOneStep() const { return isKeyOuter && selection().getKeyBlock() == tileKeys; }
  /// How many partial outputs are on their way at a time, where they are added.
  static constexpr int64_t partSlots = 4;
  /// Partial outputs of a list.
  int64_t placesOfList() const { return forced ? forced->others : selection().getWidth(); }
  int64_t entriesOfTile() const { return tileRows / rowsOfBox; }
  int64_t tilesPerList() const { return ceilDiv(queryBlock * group, tileRows); }
  int64_t paddedDim() const { return ceilDiv(dim, 16) * 16; }
  /// Of one part, if there are several.
  int64_t paddedValueDim() const { return ceilDiv(valueDim / valueParts, 16) * 16; }
  /// Rows of a tile that are this block's, and columns of the output that a thread has with tensor memory.
  int64_t rowsOfBlock() const { return pair ? ScheduleAttr::rowsOfPair : tileRows; }
  int64_t columnsOfThread() const { return paddedValueDim() / (pair ? groups : 1); }
  /// In a pair: of a block's columns of the output, those whose values lie where keys were, and the others.
  int64_t columnsInPlace() const { return ScheduleAttr::getColumnsInPlace(valueDim); }
  int64_t columnsApart() const { return columnsOfThread() - columnsInPlace(); }
  /// Half of the tickets that producers and those who begin products count the steps of keys by: in a pair rings of `stages` and of a step more turn together.
  int64_t keyTickets() const { return pair ? stages * (stages + 1) : stages; }
  /// Elements of the output that a thread stores at a time.
  int64_t storeWidth() const { return valueDim % 8 == 0 ? 8 : 2; }
  /// Those that multiply.
  int64_t consumers() const { return 2 * tileRows * groups; }
  int64_t producers() const { return ScheduleAttr::numProducers; }
};

/// Builds the body of the kernel at the place of `k`.
class AttendKernel {
public:
  /// What a kernel sees: the order of its arguments; behind them, in the order `key_outer`, transposed lists, and which lists these are; the tensor map of
  /// queries, what the rows of other parts are. Then, of every source, keys, values, how many tokens there are, the list if there is one and, of a union, its
  /// members, tensor maps of keys and values, captured values.
  enum Argument { queryArg, outputArg, lseArg, firstFreeArg };
  /// Of a kernel that adds partial outputs to its own: a tensor map of these, lses, which list there is the first of the run; and which rows they are of.
  enum RunArgument { partialsArg = firstFreeArg, partialLsesArg, firstPartialListArg, batchOfRunArg, firstCellOfRunArg, cellsOfRunArg, firstQueryOfRunArg, queriesOfRunArg, firstFreeRunArg };
  enum KeyOuterArgument { itemsArg = firstFreeArg, entriesArg, numItemsArg, batchArg, firstCellArg, firstListArg, numListsArg, firstFreeKeyOuterArg };

  AttendKernel(KernelBuilder &k, const AttendPlan &plan);

  /// `items` is a host value.
  LogicalResult build(Value items);

private:
  /// A row of the tile: which query of which head.
  struct Row {
    Value m, head, exists; // index, i32, i1
    Value partial;         // which of the partial outputs it is, an index; null where outputs are whole
  };
  /// Sizes, and the place of one item.
  struct Item {
    Value batch, cell, list, firstRow; // index, index, index, i32
    Value firstQuery, lastQuery; // of which it has rows, i32
    Value part;                        // of the steps, i32; null where they are not split
    // Of `key_outer`: the key block, where its entries begin, how many it has, i32; the entries of the tile, for consumers an array in shared memory, for
    // producers one for each box of queries.
    Value block, firstEntry, numEntries, entriesOfTile;
    SmallVector<Value> entriesOfBoxes;
    Value valuePart;                     // of the columns of the output, an index; null if there is one
    Value firstPart;                     // the ticket of the first of its partial outputs, i32; null if there are none to add
    Value exists;                        // i1: false of the item behind the last
    Value next;                          // which of all items the block has next, an index
  };
  /// The running softmax of the rows.
  struct State {
    Value max, sum, output;
  };
  using Hook = llvm::function_ref<void()>;
  using Products = llvm::function_ref<Value()>; // waits for them
  /// Keys or values in shared memory, or some columns of them.
  struct Rows {
    Value ring, pipe;
    int64_t columns, firstColumn = 0;
    bool areValues = false;
    Value rowRing = {}; // which rows of the map are gathered
  };
  /// Where they come from.
  struct Table {
    BufferView view;
    Value map, rowSteps[3]; // how many rows of the map it is to those of the next sequence, head and number
  };
  /// A source in the kernel: buffers and sizes.
  struct Source : AttendSource {
    Source(const AttendSource &source, unsigned number) : AttendSource(source), number(number) {}

    Table keys, values;
    Value tokens, keyRows;              // i32
    Value lists, members;               // null if there are none
    unsigned number;
    SmallVector<Value> captured;

    const Table &tableOf(const Rows &rows) const { return rows.areValues ? values : keys; }
  };
  /// The keys of one of them.
  struct Slots : KeySlots {
    Slots(const KeySlots &slots, const Source &source) : KeySlots(slots), source(&source) {}
    const Source *source;
  };
  /// What the mask has to know of the keys of a step: their numbers, and who takes part.
  struct Numbers {
    Value entries, members;
  };

  void allocate();
  void readSizes();
  unsigned readSource(Source &source, unsigned next);
  Item decodeItem(Value item);
  Item decodeItemOfRun(Value item);
  void setQueries(Item &item);
  Value getKeyOuterTotal();
  Value loadEntryOf(const Item &item, Value row);
  Value getEntry(const Item &item, Value row);
  SmallVector<Value> loadKeyOuterItem(Value number);
  SmallVector<Value> lookUpItem(Value number, Value total, ValueRange parts);
  void loadQueryBoxes(const Item &item, Value tile, Value ticket);
  void publishKeyOuterItem(const Item &item, Value slot);
  Item readKeyOuterItem(Value slot);
  void setKeyOuterQueries(Item &item);
  void produceKeyOuter(Value total);
  Value produceStep(const Item &item, const Slots &slots, Value step, Value ticket);
  void consumeKeyOuter(Value total);
  Value attendItem(const Item &item, const Slots &slots, Value queryTile, Value ticket);
  void passStep(Value ticket);
  SmallVector<Value> attendKeyOuter(const Slots &slots, ScoreTiles &scores, Value queryTile, ValueRange carried);
  /// What producers tell consumers of an item, behind its entries.
  enum PublishedPart { cellPart, blockPart, firstRowPart, numPublishedParts };
  Item decodeKeyOuterItem(Value number, ValueRange parts);
  Value getPartialRow(const Item &item, Value m, Value head);
  Row getKeyOuterRow(const Item &item, Value row);
  Row getKeyOuterRow(const Item &item, Value row, Value entry);
  Row getRow(const Item &item, Value row);
  RowPlace placeOf(const Item &item, const BufferView &view, Value row);
  /// Where a row of the output goes, or its lse.
  RowPlace resultPlaceOf(const Item &item, const BufferView &view, Value row);
  Slots getSlots(const Item &item) { return getSlots(item, sources.front()); }
  Slots getSlots(const Item &item, const Source &source);
  SmallVector<Slots, 1> getAllSlots(const Item &item);
  /// Whether a softmax begins or ends with the keys of a source, and which one it is.
  bool beginsSoftmax(const Source &source) const { return source.number == 0 || plan.hasSoftmaxes(); }
  bool endsSoftmax(const Source &source) const { return source.number + 1 == sources.size() || plan.hasSoftmaxes(); }
  unsigned getSoftmax(const Source &source) const { return plan.hasSoftmaxes() ? source.number : 0; }
  unsigned getLastSoftmax() const { return getSoftmax(sources.back()); }
  std::array<Value, 3> getPlaceOfList(const Source &source, const Item &item);
  void useList(Slots &slots, const Item &item);
  Value getScratch(unsigned i) { return scratch ? t.slot(scratch, k.i32(i)) : Value(); }

  void buildWithoutRoles(Value total);
  void loadStep(const Item &item, const Slots &slots, Value step);
  void buildRoles(Value total);
  void allocateRoles();
  void produce(Value total);
  Value produceSteps(const Item &item, const Slots &slots, Value steps, Value first);
  void consume(Value total);
  SmallVector<Value> packRows(const Item &item);
  Item unpackRows(ArrayRef<Value> values);
  Item getNoItem();
  size_t getNumRows() const { return 4 + (plan.split > 1) + (plan.isKeyOuter ? 3 : 0) + plan.addsPartials; }
  Item decodeItemOrNone(Value number, Value total);
  Item receiveItem(Value slot);
  SmallVector<Value> forEachItemAndOne(Value total, ValueRange inits, llvm::function_ref<SmallVector<Value>(Value number, ValueRange carried)> body);
  Value getSteps(const Slots &slots);
  SmallVector<Value> readSteps(MutableArrayRef<Slots> slots, Value ticket);
  Value beginScores(Value lhs, Value ticket);
  void publishZeros(const Rows &rows);
  /// Which of its softmaxes, of an item.
  struct Softmax {
    Item item;
    unsigned number;
  };
  SmallVector<Value> consumeStep(const Slots &slots, ScoreTiles &scores, Value lhs, Value isFirst, const Softmax &last, ValueRange carried);

  void allocateTurns();
  void takeTurns(unsigned group, Value total);
  /// What a group has between two rounds, in which each group has a step: with it tickets of keys, and of what groups share.
  struct Round {
    State state;
    Value keyTicket, ticket;
  };
  /// Where the softmax before ends: in the first round of the next one.
  struct End {
    Value isHere; // null where no softmax begins
    Softmax softmax;
  };
  void takeTurn(unsigned group, const Slots &slots, ScoreTiles &scores, Value lhs, const End &end, Round &round);
  void takeFirstTurn(const Slots &slots, ScoreTiles &scores, Value lhs, const End &end, Round &round);
  void takeSecondTurn(const Slots &slots, ScoreTiles &scores, Value lhs, const End &end, Round &round);
  void giveNothing();
  void fetchLists(const Item &item);
  Value getTicketOf(unsigned group, unsigned part, Value ticket);
  static int64_t getPaddedColumns(const Rows &rows);
  void endSoftmax(unsigned group, ScoreTiles &scores, const End &end, Round &round);
  /// Where rows are joined with others as they are stored, or are of several lists, there are no registers for scores meanwhile.
  bool storesUnderScores() const { return !plan.join && plan.memberWords == 0; }
  void shareSum(unsigned group, Value sum, Value ticket);
  Value beginScoresOfTurn(unsigned group, unsigned part, Value lhs, Value ticket, Value products);
  Value beginScoresOfColumns(unsigned group, unsigned part, int64_t first, int64_t columns, Value lhs, Value products);
  SoftmaxStep getSoftmaxOfTurn(unsigned group, const Slots &slots, ScoreTiles &scores, Value products, const Round &round);
  void multiplyOwn(unsigned group, ScoreTiles &scores, const SoftmaxStep &softmax, Round &round);
  void followOther(unsigned group, ScoreTiles &scores, Round &round);
  void beginOther(unsigned group, Round &round);
  void endOther(unsigned group, Round &round, int64_t pending);
  Value beginOutputs(unsigned group, unsigned turn, Value weights, Value output);
  void shareWeights(unsigned group, const SoftmaxStep &softmax, Value ticket);
  Value getSharedRows(unsigned group);
  Value getSharedWeights(unsigned group);
  Value joinSums(unsigned group, Value sum, Value ticket);

  void allocateHandOver();
  void allocateTensors();
  void buildTensorRoles(Value total);
  void load(Value total);
  SmallVector<Value> takeSteps(Value ticket);
  void multiply(Value total);
  void beginTensorScores(Value queryTile, Value keyTicket, Value scoreTicket);
  void beginTensorOutputs(const Item &item, Value keyTicket, Value weightTicket, Value adds);
  void softmax(Value total);
  SmallVector<Value> softmaxStep(const Slots &slots, ScoreTiles &scores, Value step, ValueRange carried);
  void correct(Value rescale, Value weightTicket);
  void findRows(const Item &item, const Slots &slots, Value step, const Rows &rows, Value found);
  Value gatherSteps(const Item &item, const Slots &slots, Value steps, Value first);
  void handOver(const Item &item, ScoreTiles &scores, Value ticket, Value steps, Value held, Value sum);
  void storeWeights(Value weights, Value ticket);
  void finish(Value total);
  void storePiece(const Item &item, Value tile, int64_t column, int64_t columns, ArrayRef<Value> otherFactors);

  void allocatePair();
  Value produceStepsInPair(const Item &item, const Slots &slots, Value steps, Value first);
  SmallVector<int64_t> getKeyPieces() const;
  Value getPlaceOfHalf(Value ticket, unsigned half, bool ofValues);
  void gatherInPair(const Rows &rows, Value step, Value first, Value column, Value ticket, Value isCopied = {});
  void gatherKeysInPair(Value step, Value ticket);
  void gatherValuesInPair(Value step, Value ticket);
  void beginScoresInPair(Value queryTile, Value keyTicket, Value scoreTicket);
  void beginOutputsInPair(Value keyTicket, Value weightTicket, Value adds);

  void loadQueries(const Item &item, Value tile);
  /// The same, as a box where that is possible, else finished.
  void loadQueries(const Item &item, Value tile, Value ticket);
  /// What is to be copied in a step: of each stretch the first number and how many there are, or the places of the rows of keys and values.
  using Lookup = SmallVector<Value>;
  Lookup lookUp(const Item &item, const Slots &slots, Value step);
  Value copyStep(const Item &item, const Slots &slots, Value step, const Lookup &found, Value ticket);
  Value copySteps(const Item &item, const Slots &slots, Value steps, const Lookup &found, Value first);
  SmallVector<Value> produceTwoTurns(const Item &item, const Slots &slots, Value step, const Lookup &first, const Lookup &second, Value ticket);
  static KeySlots::Step getStretches(ValueRange found);
  /// The numbers of a step, for the mask: those of all its slots, or of each stretch the first one and how many there are.
  void loadNumbers(const Slots &slots, Value step, const Lookup &found, const Numbers &numbers);
  Numbers allocNumbers(ArrayRef<int64_t> ring);
  Numbers getNumbers(Value stage);
  void loadRows(const Item &item, const Slots &slots, const Lookup &found, const Rows &rows, Value stage);
  /// Gives a whole step to the tensor memory accelerator where there are boxes, else does `copy`.
  void copyBoxOr(llvm::function_ref<void()> copy, const Item &item, const Slots &slots, const Lookup &found, const Rows &rows, Value stage,
                 Value ticket);
  /// The same as boxes where whole steps allow it.
  void beginRows(const Item &item, const Slots &slots, const Lookup &found, const Rows &rows, Value stage, Value ticket);
  /// The same, finished.
  void loadRows(const Item &item, const Slots &slots, const Lookup &found, const Rows &rows, Value stage, Value ticket);
  Value getHead(const Item &item, const Table &table);
  Value getRowsBegin(const Item &item, const Slots &slots, const Rows &rows);
  ScoreTiles getScores(const Item &item, const Slots &slots);
  State getInitialState();
  /// One step, from products to weights; the hook stands after what reads numbers.
  SoftmaxStep getSoftmaxStep(const Slots &slots, ScoreTiles &scores, Products awaitProducts, const Numbers &numbers, Value max, Value sum, Hook afterNumbers);
  Value getListOfRow(Value row);
  Value getMembers(const Numbers &numbers, int64_t stretch);
  /// The scores with `-inf` where the union of lists has a key that the list of a row has not.
  Value hideFromOthers(Value logits, const Numbers &numbers);
  Value getZeroScores();
  Value rescale(Value output, Value factors, Value isKept = {}, Value isStored = {});
  Value getWeights(Value weights);
  State attend(const Slots &slots, ScoreTiles &scores, Value lhs, Value stage, State state);
  Value getLogits(const Slots &slots, ScoreTiles &scores, Products awaitProducts, const Numbers &numbers);
  void store(const Softmax &softmax, ScoreTiles &scores, State state);
  /// What rows are to be multiplied by, if they are part of a `merge` or `mix` that the kernel makes, and what is added: the rows of the softmaxes before and,
  /// with the last one, those of other parts; `lse` becomes that of all.
  struct Joined {
    Value factor; // null if there are no others
    AddedRows others;
  };
  Joined join(const Softmax &softmax, Value &lse, Value firstColumn);
  SmallVector<unsigned> getPartsOf(const Softmax &softmax) const;
  AddedRows getOthers(const Softmax &softmax, ArrayRef<Value> factors, Value firstColumn);
  Value scaleRows(Value tile, Value factors);
  Value loadLseOf(const Item &item, Value row, Value part);
  Value getGreatestLse(const Item &item);
  /// How producers find the partial outputs of an item: its list, its first row and how many there are, i32.
  struct Parts {
    Value list, firstRow, count, firstTicket;
  };
  Parts getParts(const Item &item);
  void copyParts(const Parts &parts, Value first, Value end);
  Value getPartTicket(Value first, Value part);
  void produceWithPartials(Value total);
  Value addPartials(const Item &item, State &state, Value reference);
  /// The part of `group` where groups have columns each; `state.sum` is that of all.
  void storePart(const Softmax &softmax, ScoreTiles &scores, State state, unsigned group);

  Value next(Value ticket, int64_t slots);
  Value slotOf(Value ticket, int64_t slots);
  Value getValueTile(Value stage);
  int64_t getColumnsOfGroup() const { return plan.paddedValueDim() / (plan.takesTurns ? plan.groups : 1); }

  KernelBuilder &k;
  const AttendPlan &plan;
  TileEmitter t;
  Type elementType;
  LogicalResult result = success();

  SmallVector<Source, 1> sources;
  SmallVector<Value> joinedBuffers; // what `plan.join` passes
  Value queries; // i32
  BufferView queryView, outputView, lseView;
  Rows keys, values; // one pipe and ring for both if values are keys
  Rows inPlace;      // in a pair: keys that the values of the same step replace
  Numbers numberRings;
  Value queryRing, queryMap, queryPipe, stepsRing, itemRing, weightTile, scratch;
  /// The step of a group that takes turns: its keys in parts, of which each begins with the columns of a group's outputs; what the group gives to the other.
  struct Turn {
    Rows parts[2];
    Numbers numbers;
    Value rows, weights, pipe;
  };
  Turn turns[2];
  Value turnPipe;
  Value partRing, partPipe; // partial outputs that are on their way
  // With tensor memory: scores, weights and outputs, pipes between those that make them; what outputs are multiplied by, and how many steps they have.
  SmallVector<Value> tensors;
  /// Columns of the output that one product makes.
  struct OutputPart {
    Value tensor;
    int64_t first, columns; // of those that a thread has
  };
  SmallVector<OutputPart> outputParts;
  Value numberPipe, stepsPipe, scorePipe, weightPipe, outputPipe, factorPipe, factorRing, countRing;
  SmallVector<Value> otherFactorRings; // of the other parts of `plan.join`
};

} // namespace mlir::ssa

#endif // SSA_LIB_CONVERSION_SSATOSSAGPU_ATTENDKERNEL_H
