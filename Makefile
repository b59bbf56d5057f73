# The commands of the house, thin over CMake presets and tools/.
#
#   make run [CONF=conf/ipv4-router.click] [DURATION=10] [WORKERS=n]   build what is missing and run a configuration
#   make test                    every test; the last line is "N passed, N failed, N skipped"
#   make bench                   benchmarks of bench/micro and of CONF
#   make install [PREFIX=/usr/local] [DESTDIR=] [CLICK=1]   CLICK=1 adds the names `click` and `click-flatten`
#   make format, make tidy       clang-format over all sources, clang-tidy over the files that changed
#   make asan                    the tests under AddressSanitizer and UndefinedBehaviorSanitizer
#   make tsan                    the unit tests under ThreadSanitizer
#   make fuzz [SECONDS=60]       every fuzz target for so many seconds
#   make portable                build-portable/headrace: one file for any recent x86-64 Linux
#   make clean                   remove all build folders

CONF ?= conf/ipv4-router.click
DURATION ?= 10
WORKERS ?=
PREFIX ?= /usr/local
DESTDIR ?=
CLICK ?=
SECONDS ?= 60

.PHONY: run build test bench install format tidy asan tsan fuzz portable clean help

help:
	@sed -n 's/^# \{0,1\}//p' Makefile | sed '/^CONF/,$$d'

build:
	@tools/deps build
	@tools/build release headrace

run: build
	build/headrace run $(CONF) --duration $(DURATION) $(if $(WORKERS),--workers $(WORKERS))

test:
	@tools/deps all
	@tools/build release all
	@tools/run-tests --build build

bench:
	@tools/deps all
	@tools/build release all
	@tools/bench $(CONF)

install: build
	DESTDIR=$(DESTDIR) cmake --install build --prefix $(PREFIX)
	$(if $(CLICK),ln -sf headrace $(DESTDIR)$(PREFIX)/bin/click)
	$(if $(CLICK),ln -sf headrace $(DESTDIR)$(PREFIX)/bin/click-flatten)

format:
	@tools/format

tidy:
	@tools/deps all
	@tools/tidy

asan:
	@tools/deps all
	@tools/build asan all
	@# Compiling device programs takes minutes with every allocation of NVIDIA's compiler checked, and shows nothing of ours.
	@# Left out of the Python tests: good traffic for seconds, and the documents' commands, which other tests run as well.
	@tools/run-tests --build build-asan --side-by-side \
		--without-python test_docs.py,test_first_router.py,test_multiworker.py,test_real_time.py \
		--without 'CudaProgram.*:CudaCompile.EveryShader*:CudaBackend.ProgramCompiles'

tsan:
	@tools/deps all
	@tools/build tsan headrace_tests
	@tools/run-tests --build build-tsan --only unit

fuzz:
	@tools/deps all
	@tools/fuzz --seconds $(SECONDS)

portable:
	@tools/deps all
	@tools/build portable headrace

clean:
	rm -rf build build-debug build-asan build-tsan build-tidy build-portable
