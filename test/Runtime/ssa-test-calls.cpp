//===- ssa-test-calls.cpp - Calls by the C++ launcher ---------------------===//
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//===----------------------------------------------------------------------===//
//
// Reads a JSON list of batches from standard input and makes their calls:
//
//   {"bundle": FILE, "device": 0, "calls": [{"entry": NAME, "stream": 0, "results": [null, {"pointer": ..}, ..],
//    "arguments": [{"pointer": P, "dtype": "f32", "shape": [..], "strides": [..]}, 3, {"float": 0.5}, ..]}, ..]}
//
// Prints one line for each call, or for the batch if its bundle cannot be loaded: "ok" and the pointers of the results,
// or "error: " and the message.
//
//===----------------------------------------------------------------------===//

#include "ssa/Runtime/Launcher.h"
#include "llvm/Support/DynamicLibrary.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir::ssa::runtime;
using llvm::Error;
using llvm::Expected;

static ArrayView readArray(const llvm::json::Object &json) {
  static constexpr DType all[] = {DType::I1,     DType::I8,  DType::I16,  DType::I32, DType::I64, DType::F8E4M3FN,
                                  DType::F8E5M2, DType::F16, DType::BF16, DType::F32, DType::F64};
  ArrayView array;
  array.pointer = *json.getInteger("pointer");
  for (DType dtype : all)
    if (getName(dtype) == *json.getString("dtype"))
      array.dtype = dtype;
  for (const llvm::json::Value &size : *json.getArray("shape"))
    array.shape.push_back(*size.getAsInteger());
  for (const llvm::json::Value &stride : *json.getArray("strides"))
    array.strides.push_back(*stride.getAsInteger());
  return array;
}

static ArgumentValue readArgument(const llvm::json::Value &json) {
  if (const llvm::json::Object *object = json.getAsObject()) {
    if (std::optional<double> number = object->getNumber("float"))
      return ArgumentValue::ofFloat(*number);
    return readArray(*object);
  }
  return ArgumentValue::ofInteger(*json.getAsInteger());
}

/// The message in one line.
static std::string describe(Error error) {
  std::string text = llvm::toString(std::move(error));
  std::replace(text.begin(), text.end(), '\n', '|');
  return "error: " + text;
}

/// Makes a call, and lists the pointers of its results.
static Expected<std::string> makeCall(const Device &device, Program &program, const llvm::json::Object &json) {
  const Plan *plan = program.getTarget().findEntry(*json.getString("entry"));
  if (!plan)
    return makeError("no such entry");
  std::vector<ArgumentValue> arguments;
  for (const llvm::json::Value &argument : *json.getArray("arguments"))
    arguments.push_back(readArgument(argument));
  Expected<Call> call = Call::create(*plan, arguments);
  if (!call)
    return call.takeError();

  ContextScope scope(device);
  if (Error error = scope.takeError())
    return error;
  const DriverFunctions &cuda = device.getDriver().functions();
  std::vector<ArrayView> results(call->results().begin(), call->results().end());
  for (auto [i, result] : llvm::enumerate(results)) {
    const llvm::json::Array *given = json.getArray("results");
    if (given && (*given)[i].getAsObject())
      result = readArray(*(*given)[i].getAsObject());
    else if (plan->results[i].isOwned && result.getExtentInBytes())
      cuda.memAlloc(&result.pointer, result.getExtentInBytes());
  }
  if (Error error = call->setResults(results))
    return error;
  uint64_t workspace = 0;
  if (call->getWorkspaceBytes())
    cuda.memAlloc(&workspace, call->getWorkspaceBytes());
  if (Error error = program.launch(*call, workspace, reinterpret_cast<Stream>(*json.getInteger("stream"))))
    return error;
  std::string line = "ok";
  for (const ArrayView &result : call->results())
    line += " " + std::to_string(result.pointer);
  return line;
}

static Expected<std::string> run(const llvm::json::Object &json) {
  std::string path = json.getString("bundle")->str();
  auto file = llvm::MemoryBuffer::getFile(path);
  if (!file)
    return makeError("cannot read '" + path + "'");
  Expected<Bundle> bundle = Bundle::parse((*file)->getBuffer(), path);
  if (!bundle)
    return bundle.takeError();
  Expected<std::unique_ptr<Device>> device = Device::open(*json.getInteger("device"));
  if (!device)
    return device.takeError();
  Expected<std::unique_ptr<Program>> program = Program::load(**device, *bundle, path);
  if (!program)
    return program.takeError();
  std::string lines;
  auto begin = reinterpret_cast<void (*)()>(llvm::sys::DynamicLibrary::SearchForAddressOfSymbol("fakeBegin"));
  for (const llvm::json::Value &call : *json.getArray("calls")) {
    if (begin)
      begin();
    Expected<std::string> line = makeCall(**device, **program, *call.getAsObject());
    lines += (lines.empty() ? "" : "\n") + (line ? *line : describe(line.takeError()));
  }
  return lines;
}

int main() {
  auto input = llvm::MemoryBuffer::getSTDIN();
  Expected<llvm::json::Value> json = llvm::json::parse((*input)->getBuffer());
  for (const llvm::json::Value &batch : *json->getAsArray()) {
    Expected<std::string> lines = run(*batch.getAsObject());
    llvm::outs() << (lines ? *lines : describe(lines.takeError())) << "\n";
  }
  return 0;
}
