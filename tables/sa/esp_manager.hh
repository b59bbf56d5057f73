#pragma once
/// \file
/// <intel-ipsec-mb.h> without the names that it had in old versions, which are macros such as SHA1. Host only.

#define NO_COMPAT_IMB_API_053
#include <intel-ipsec-mb.h>
