#pragma once
/// \file
/// The shared memory that a kernel is launched with. Read by NVRTC only.

namespace headrace::device {

/// The first kBlockBytes belong to the shader that asks for them; the others to the kernel.
extern __shared__ uint4 block_memory[];

}  // namespace headrace::device
