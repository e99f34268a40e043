// Blocks of the caching allocator that are labelled anew, not handed out.
#ifndef CORE_DEVICE_BLOCK_CONTENTS_H_
#define CORE_DEVICE_BLOCK_CONTENTS_H_

namespace slotgraph::device {

// While alive, blocks that the caching allocator frees or hands out keep their bytes, as they
// always do on a GPU: a simulated device poisons them otherwise. For a switch between checkpoints,
// which gives every block back and takes it again. One at a time in a process.
class BlockContentsKept {
 public:
  BlockContentsKept();
  ~BlockContentsKept();
  BlockContentsKept(const BlockContentsKept&) = delete;
  BlockContentsKept& operator=(const BlockContentsKept&) = delete;

 private:
  bool before_;
};

}  // namespace slotgraph::device

#endif  // CORE_DEVICE_BLOCK_CONTENTS_H_
