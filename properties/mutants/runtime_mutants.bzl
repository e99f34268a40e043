"""Bugs of the runtime itself: each is planted into a copy of one source of //core/graph."""

load("mutants.bzl", "mutant")

RUNTIME_MUTANTS = [
    mutant(
        id = "g01",
        bug = "gradients of parameters are copied one by one to addresses that the allocator has handed out again",
        source = "capture",
        find = "for (std::size_t i = 0; i < memory.copies.gradients.size(); ++i) {",
        replace = """
          static std::map<const void*, void*> anchors;
          if (source.profile.kind == FrameKind::kCopied) {
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
          for (std::size_t i = 0; i < memory.copies.gradients.size(); ++i) {""",
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
    mutant(
        id = "g11",
        bug = "frames in flight are not noted",
        source = "flight",
        find = "by_frame_[plan.frame] = branch; by_colour_[plan.colour] = branch;",
        replace = "",
        suite = "replay",
        caught_by = "Replay.MissingGradientsAreZeros",
    ),
    mutant(
        id = "g12",
        bug = "bytes are not poisoned when their life ends",
        source = "lease",
        find = "if (poison) bytes_of(region_of(storage)).fill_(kPoison);",
        replace = "",
        suite = "replay",
        caught_by = "Replay.P11OutputsAreGoneAfterTheirBackward",
    ),
    mutant(
        id = "g13",
        bug = "what is used after its life is not refused",
        source = "lease",
        find = "storage.unsafeGetStorageImpl()->release_data_and_set_meta_custom_data_ptr_error_msg_(",
        replace = "(void)std::string(",
        suite = "replay",
        caught_by = "Replay.P11LeadingGradientsLiveUntilTheEndOfTheNextEvent",
    ),
    mutant(
        id = "g14",
        bug = "named inputs are taken by their position",
        source = "arguments",
        find = "return each.first == name;",
        replace = "return static_cast<void>(each), !name.empty();",
        suite = "replay",
        caught_by = "Replay.NamedInputsAreFoundByName",
    ),
    mutant(
        id = "g15",
        bug = "the turn to capture is not given back",
        source = "state",
        find = "turn_taken.store(false);",
        replace = "",
        suite = "state",
        caught_by = "ProcessState.ConcurrentAndNestedCallsAreRefused",
    ),
    mutant(
        id = "g16",
        bug = "what warm-up wrote outside of its own memory stays",
        source = "writes",
        find = "bytes_of(region_of(*storage)).copy_(kept.bytes);",
        replace = "(void)kept;",
        suite = "state",
        caught_by = "ProcessState.IsWhatItWasAfterSuccessAndAfterAFailureAtEveryCall",
    ),
    mutant(
        id = "g17",
        bug = "runs of the warm-up are not compared",
        source = "warm_up",
        find = "if (kind != FrameKind::kFree)",
        replace = "if (false)",
        suite = "rules",
        caught_by = "Rules.W03EveryRunIsTheSame",
    ),
    mutant(
        id = "g18",
        bug = "what a capture leaves in the pool is not looked at",
        source = "slot_capture",
        find = "if (!added.empty()) (void)resolve_owners(added, roots());",
        replace = "",
        suite = "late",
        caught_by = "Late.K09HiddenSavesAreFoundWhereTheyWouldBeLost",
    ),
    mutant(
        id = "g19",
        bug = "allocator settings stay as the call needs them",
        source = "settings",
        find = "set_allocator_config(before_);",
        replace = "",
        suite = "state",
        caught_by = "ProcessState.ExpandableSegmentsAreOffWhileACallRunsAndOnAgainAfterIt",
    ),
    mutant(
        id = "g20",
        bug = "generators of the caller are not registered with the graphs",
        source = "capture_guard",
        find = "for (const at::Generator& generator : site.generators)",
        replace = "for (const at::Generator& generator : std::vector<at::Generator>())",
        suite = "state",
        caught_by = "ProcessState.RandomNumbersAreDrawnAsEagerDraws",
    ),
]
