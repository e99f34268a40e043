"""Bugs of the runtime itself: each is planted into a copy of one source of //core/graph."""

load("mutants.bzl", "mutant")

RUNTIME_MUTANTS = [
    mutant(
        id = "g01",
        bug = "gradients of parameters are copied one by one to addresses that the allocator has handed out again",
        source = "capture",
        find = "if (!source.copies) return;",
        replace = """
          static std::map<const void*, void*> anchors;
          if (source.copies) {
            const at::NoGradGuard quiet;
            for (std::size_t i = open.inputs.size(); i < gradients.size(); ++i) {
              at::Tensor& gradient = gradients[i];
              if (!gradient.defined()) continue;
              const void* const parameter = open.branch.parameters[i - open.inputs.size()].unsafeGetTensorImpl();
              void* const anchor = anchors.emplace(parameter, gradient.data_ptr()).first->second;
              at::Tensor target = borrowed_tensor(anchor, gradient.sizes(), gradient.strides(),
                                                  gradient.scalar_type(), nullptr);
              if (anchor != gradient.data_ptr()) target.copy_(gradient);
              gradient = target;
            }
          }
          if (!source.copies) return;""",
        suite = "alone",
        caught_by = "FramesAlone.VariantsOfDifferentSizesAreRightInEveryMode",
    ),
    mutant(
        id = "g02",
        bug = "missing incoming gradients keep what the buffer held",
        source = "branch",
        find = "if (!incoming[i].defined()) incoming[i] = at::zeros_like(branch.incoming[i]);",
        replace = "if (!incoming[i].defined()) incoming[i] = branch.incoming[i];",
        suite = "replay",
        caught_by = "Replay.MissingGradientsAreZeros",
    ),
    mutant(
        id = "g03",
        bug = "parameter gradients are returned in the memory of the pool",
        source = "branch",
        find = "result.push_back(copied ? owned_copy(gradient, consumer) : at::Tensor());",
        replace = "result.push_back(copied ? gradient.detach() : at::Tensor());",
        suite = "replay",
        caught_by = "Replay.ParameterGradientsOwnTheirMemory",
    ),
    mutant(
        id = "g04",
        bug = "the stream of the caller does not wait for that of the replay",
        source = "branch",
        find = "done.block(here.unwrap());",
        replace = "(void)here;",
        suite = "replay",
        caught_by = "Replay.ASideStreamWaitsAndIsWaitedFor",
    ),
    mutant(
        id = "g05",
        bug = "the stream of the replay does not wait for that of the caller",
        source = "branch",
        find = "ready.block(options.stream->unwrap());",
        replace = "",
        suite = "replay",
        caught_by = "Replay.ASideStreamWaitsAndIsWaitedFor",
    ),
    mutant(
        id = "g06",
        bug = "sources in the places of other targets are read after they were overwritten",
        source = "move",
        find = "if (clobbered) safe[i] = sources[i].clone();",
        replace = "(void)clobbered;",
        suite = "callables",
        caught_by = "Callables.InputsInStaticPlacesOfOtherInputsAreMovedAsIfAtOnce",
    ),
    mutant(
        id = "g07",
        bug = "buffers stay as the warm-up left them",
        source = "state",
        find = "if (saved.buffers[i].defined()) saved.buffers[i].copy_(saved.contents[i]);",
        replace = "",
        suite = "state",
        caught_by = "ProcessState.IsWhatItWasAfterSuccessAndAfterAFailureAtEveryCall",
    ),
    mutant(
        id = "g08",
        bug = "the generators stay as the captures left them",
        source = "state",
        find = "generator.set_state(state);",
        replace = "(void)state;",
        suite = "state",
        caught_by = "ProcessState.IsWhatItWasAfterSuccessAndAfterAFailureAtEveryCall",
    ),
    mutant(
        id = "g09",
        bug = "saved tensors are read where they were born, not where they were copied",
        source = "capture",
        find = "return target.detach().requires_grad_(tensor.requires_grad());",
        replace = "return tensor;",
        suite = "callables",
        caught_by = "Callables.OnePoolForAVariantBreaksInAnotherOrderAndPrivatePoolsAndPlacementDoNot",
    ),
    mutant(
        id = "g10",
        bug = "survivors count as transients",
        source = "profile",
        find = "if (allocation.alive) {\n      const auto output",
        replace = "if (false) {\n      const auto output",
        suite = "callables",
        caught_by = "Callables.VariantsOfAFrameShareAddressesAndTheArenaIsTheLargest",
    ),
]
