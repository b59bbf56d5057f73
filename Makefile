# Commands: a thin layer over CMake presets and tools/.
#
#   make run [CONF=conf/ipv4-router.click] [DURATION=10] [WORKERS=n]   build if needed and run a configuration
#   make test                    every test; the last line is "N passed, N failed, N skipped"
#   make bench                   benchmarks of bench/micro and of CONF
#   make install [PREFIX=/usr/local] [DESTDIR=] [CLICK=1]   CLICK=1 adds the names `click` and `click-flatten`
#   make uninstall [PREFIX=/usr/local] [DESTDIR=]   removes what `make install` put there
#   make deb                     Debian packages, with a systemd unit, in build-package/packages
#   make format, make tidy       clang-format over all sources, clang-tidy over the files that changed
#   make asan                    the unit tests under AddressSanitizer and UndefinedBehaviorSanitizer (part of make test)
#   make tsan                    the multithreaded tests under ThreadSanitizer
#   make fuzz [SECONDS=60]       every fuzz target, SECONDS seconds each
#   make portable                build-portable/headrace: one file for any recent x86-64 Linux
#   make clean                   remove all build folders

CONF ?= conf/ipv4-router.click
DURATION ?= 10
WORKERS ?=
PREFIX ?= /usr/local
DESTDIR ?=
CLICK ?=
SECONDS ?= 60

.PHONY: run build test bench install uninstall deb format tidy asan tsan fuzz portable clean help

help:
	@sed -n 's/^# \{0,1\}//p' Makefile | sed '/^CONF/,$$d'

build:
	@tools/deps build
	@tools/build release headrace

run: build
	build/headrace run $(CONF) --duration $(DURATION) $(if $(WORKERS),--workers $(WORKERS))

# The unit tests run with sanitizers, all others on the release binary. Under sanitizers NVIDIA's compiler takes minutes to
# compile device programs, and this checks none of our code, so those tests run without sanitizers. So do long simulations:
# BalanceModel and the fuzz target `balance` show sanitizers the same code.
IN_RELEASE = 'CudaProgram.*:CudaCompile.EveryShader*:CudaBackend.ProgramCompiles:BalanceSimulator.*'

test:
	@tools/deps all
	@tools/build release headrace headrace_tests_backend
	@tools/build asan headrace headrace_tests
	@tools/run-tests --build build --unit-build build-asan --side-by-side --in-build $(IN_RELEASE)

bench:
	@tools/deps all
	@tools/build release all
	@tools/bench $(CONF)

install: build
	DESTDIR=$(DESTDIR) cmake --install build --prefix $(PREFIX)
	$(if $(CLICK),ln -sf headrace $(DESTDIR)$(PREFIX)/bin/click)
	$(if $(CLICK),ln -sf headrace $(DESTDIR)$(PREFIX)/bin/click-flatten)

uninstall:
	@tools/uninstall $(PREFIX) $(DESTDIR)

deb:
	@tools/deps all
	@tools/build package headrace
	@cd build-package && cpack -G DEB >cpack.log || { cat cpack.log; exit 1; }
	@ls build-package/packages/*.deb

format:
	@tools/format

tidy:
	@tools/deps all
	@tools/tidy

asan:
	@tools/deps all
	@tools/build release headrace_tests_backend
	@tools/build asan headrace_tests
	@tools/run-tests --build build --unit-build build-asan --only unit,reference --in-build $(IN_RELEASE)

# Long tests without threads that run at the same time: compilers of programs, simulations, real tables and rules, and all
# orders of events one after the other.
ONE_AT_A_TIME = 'CudaProgram.*:Cuda*.ProgramCompiles:CudaCompile.*:ESPCompile.*:PatternCompile.*:ShaderHooks.*'$\
  ':AllBarrierOrders.*:BarrierOrders.*:BalanceSimulator.*:PatternReal.*:*RegexRules.*:Lpm*Real*.*'$\
  ':*PipelineRandom.*:OpenFlowGolden.*:OpenFlowNumbers.*:OpenFlowErrors.*:OpenFlowSamples.*:OpenFlowMatch.*'

tsan:
	@tools/deps all
	@tools/build tsan headrace_tests
	@tools/run-tests --build build-tsan --only unit --leave-out $(ONE_AT_A_TIME)

fuzz:
	@tools/deps all
	@tools/fuzz --seconds $(SECONDS)

portable:
	@tools/deps all
	@tools/build portable headrace

clean:
	rm -rf build build-debug build-asan build-tsan build-tidy build-portable build-package
