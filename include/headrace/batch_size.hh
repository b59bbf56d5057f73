#pragma once
/// \file
/// How many packets sources hand on together.

namespace headrace {

/// The most packets that a source hands on together if its arguments do not say: as many as have room in the first-level
/// cache with their headers, annotations, table entries and what elements keep beside them; 32 to 256.
int default_batch();
/// Sets it, before the first source is made. \param packets 1 to Batch::kCapacity
void set_default_batch(int packets);

}  // namespace headrace
