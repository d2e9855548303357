# SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
# bpf-portmap. `make help` says what there is. Adding a source file needs no edit here.

VERSION := 1.0.0
PREFIX ?= /usr/local
# Where container runtimes look for CNI plugins.
CNIDIR ?= /opt/cni/bin
# Where Podman looks for drivers of netavark.
NETAVARKDIR ?= $(PREFIX)/lib/netavark
DOCUMENTATION := $(PREFIX)/share/doc/bpf-portmap
BUILD := build

CC ?= gcc
CLANG ?= clang
CLANG_FORMAT ?= clang-format
# Ubuntu keeps bpftool with its kernels' tools, where PATH does not reach.
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool /usr/local/sbin/bpftool \
	$(lastword $(sort $(wildcard /usr/lib/linux-tools/*/bpftool)))) bpftool)
PKG_CONFIG ?= pkg-config

PACKAGES_BUILD := gcc make clang libbpf-dev libelf-dev zlib1g-dev libjansson-dev \
	libnl-3-dev nettle-dev pkg-config libmicrohttpd-dev
# The archives and RPM packages have no cni-ipam, which needs shared libraries.
PACKAGES_STATIC := $(filter-out libmicrohttpd-dev,$(PACKAGES_BUILD))
PACKAGES_CROSS := $(PACKAGES_STATIC) bpftool gcc-aarch64-linux-gnu libc6-dev-arm64-cross \
	$(addsuffix :arm64,$(filter %-dev,$(PACKAGES_STATIC)))
PACKAGES_CHECK := libcmocka-dev containernetworking-plugins iproute2 iptables nftables \
	tcpdump conntrack curl jq gojq busybox-static procps util-linux ethtool libclang-rt-dev llvm strace prometheus \
	firewalld ufw aardvark-dns
PACKAGES_DEMO := containernetworking-plugins iproute2 nftables curl jq busybox-static util-linux
PACKAGES_KERNEL := qemu-system-x86 cpio kmod xz-utils ppp wireguard-tools
PACKAGES_BENCH := containernetworking-plugins iproute2 iptables nftables conntrack jq procps \
	util-linux ethtool
PACKAGES_LINT := clang-format shellcheck cppcheck
PACKAGES_ROOT := debootstrap git util-linux

# As many commands at a time as there are processors; `make -jN` says otherwise.
ifeq ($(MAKELEVEL)$(filter -j%,$(MAKEFLAGS)),0)
MAKEFLAGS += -j$(shell nproc)
endif

# The result does not depend on where the sources are.
HERE := -ffile-prefix-map=$(CURDIR)=.
CFLAGS ?= -O2 -g
override CFLAGS += $(HERE) -std=gnu11 -Wall -Wextra -Werror -Wno-unused-parameter -Wshadow \
	-Wmissing-prototypes -Wstrict-prototypes -fno-strict-aliasing -D_GNU_SOURCE=
# Asked once, not for each file
LIBRARY_FLAGS := $(shell $(PKG_CONFIG) --cflags libnl-3.0 jansson 2>/dev/null)
override CPPFLAGS += -Iinclude -Iuser -I$(BUILD) $(LIBRARY_FLAGS)
override CPPFLAGS += -DPROGRAM_VERSION='"$(VERSION)"'
BPF_CFLAGS := $(HERE) -target bpf -g -O2 -mcpu=v3 -Wall -Wextra -Werror -Ivmlinux -Iinclude -Ibpf
# FALLBACKS=1: the programs do without what kernels older than this one lack. For tests.
ifdef FALLBACKS
BPF_CFLAGS += -DFALLBACKS
override CPPFLAGS += -DFALLBACKS
endif

# A static libc warns of functions that libraries have, and nothing here calls: what the linker says is
# shown where it fails. With its --no-warnings it would not fail where a function is missing.
link = $(call say,LINK,$@){ $(1) -o $@ $(2) 2>$@.said || { cat $@.said >&2; exit 1; }; }; rm $@.said

LIBRARIES := libbpf jansson nettle libnl-3.0
# libelf of newer distributions wants libzstd when linked statically.
STATIC_ZSTD := $(if $(findstring /,$(shell $(CC) -print-file-name=libzstd.a 2>/dev/null)),-lzstd)
LDLIBS_SHARED = $(shell $(PKG_CONFIG) --libs $(LIBRARIES)) -lelf -lz -lresolv
ifdef DYNAMIC
LDLIBS_PLUGIN = $(LDLIBS_SHARED)
LDLIBS_RUNTIME = $(shell $(PKG_CONFIG) --libs jansson nettle)
else
STATIC := -static
LDLIBS_PLUGIN = -lbpf -lelf -lz $(STATIC_ZSTD) -ljansson -lnettle -lnl-3 -lresolv -lpthread -lm
LDLIBS_RUNTIME = -ljansson -lnettle
endif

ifeq ($(V),1)
Q :=
say =
else
Q := @
say = @printf '  %-8s %s\n' $(1) $(2);
endif

# What the linker takes is written down beside the program, for its bill of materials.
INPUTS = -Wl,--trace,--trace >$@.inputs

objects = $(patsubst %.c,$(BUILD)/%.o,$(1))
PLUGIN_OBJECTS := $(call objects,$(wildcard $(addprefix user/,main.c $(addsuffix /*.c,lib cni conf net nat datapath/* plan host plugin operator operator/*))))
IPAM_OBJECTS := $(call objects,$(filter-out %/cnirun/main.c,$(wildcard $(addprefix user/,$(addsuffix /*.c,lib cni runtimes/cnirun runtimes/ipam)))))
# Linked with shared libraries always: libmicrohttpd needs gnutls, which has parts that Debian has
# no static libraries of. Without libmicrohttpd all the rest is built.
IPAM := $(if $(shell $(PKG_CONFIG) --exists libmicrohttpd 2>/dev/null && echo yes),$(BUILD)/cni-ipam)
RUNTIME_OBJECTS := $(call objects,$(wildcard $(addprefix user/,$(addsuffix /*.c,lib cni runtimes/cnirun))))
NETAVARK_OBJECTS := $(filter-out %/cnirun/main.o,$(RUNTIME_OBJECTS)) \
	$(call objects,$(wildcard user/conf/*.c user/runtimes/netavark/*.c))
PAGES := $(BUILD)/man/bpf-portmap.8 $(BUILD)/man/bpf-portmap.conf.5
COMPLETIONS := $(addprefix $(BUILD)/completion/,bash zsh fish)
SKELETONS := $(patsubst %.bpf.c,$(BUILD)/%.skel.h,$(if $(FALLBACKS),bpf/portmap.bpf.c,$(wildcard bpf/*.bpf.c)))

.DELETE_ON_ERROR:
.SECONDARY:
.PHONY: all bench demo check check-unit check-packet check-net check-fuzz check-differential soak check-engines check-kernel check-clang fuzz lint format deps deps-check deps-lint install install-ipam uninstall clean help

all: $(BUILD)/bpf-portmap $(BUILD)/cnirun $(BUILD)/netavark-bpf-portmap $(IPAM) $(PAGES) $(COMPLETIONS)

help:
	@echo 'make            build/bpf-portmap, the CNI plugin, build/cnirun, a runtime for conflists, and'
	@echo '                build/netavark-bpf-portmap, a driver for Podman 5;'
	@echo '                build/cni-ipam, an IPAM driver for Docker, where libmicrohttpd is'
	@echo '                (static; DYNAMIC=1 links shared libraries; V=1 shows the commands)'
	@echo 'make demo       as root: installs what it needs, builds, shows the main job in namespaces'
	@echo 'make bench      as root: installs what it needs, builds, measures the reference plugins, plain'
	@echo '                routing and bpf-portmap side by side (BENCH=quick: in ten minutes)'
	@echo 'make check      as root: installs what it needs, builds, runs all tests'
	@echo '                (check-unit, check-packet, check-fuzz, check-differential, check-net: one layer,'
	@echo '                nothing installed)'
	@echo 'make check-engines  as root: installs container engines too (podman, containerd), runs the'
	@echo '                tests with them, which are the last layer of make check'
	@echo 'make check-podman5  as root: the tests of Podman with version 5, in a root of Debian 13 that is'
	@echo '                kept in build/roots'
	@echo 'make fuzz       as root: random packets through the programs, random JSON through the parsers'
	@echo '                (FUZZ_SECONDS=60 each, FUZZ_SEED=)'
	@echo 'make soak       as root: random packets, sockets and events beside those of the reference plugins'
	@echo '                (SOAK_SECONDS=3600, SOAK_SEED=)'
	@echo 'make check-kernel  as root, on Debian: installs qemu too, boots the kernels of Debian 12,'
	@echo '                13 and sid in it, runs the main part of the tests on each, prints a table'
	@echo '                (KERNELS="bookworm sid bookworm-arm64": which ones, emulated arm64 too)'
	@echo 'make check-clang  as root: installs other versions of clang too, builds the programs with each'
	@echo '                (CLANGS="14 15 16 17 18 19"), runs verifier and packet tests with them'
	@echo 'make image      a container image of the binary alone, for Kubernetes: build/bpf-portmap-image.tar'
	@echo '                (IMAGE=localhost/bpf-portmap:$(VERSION): its name)'
	@echo 'make bill       the bill of materials of each program that was built (SPDX): build/*.spdx.json'
	@echo 'make dist       as root: the archives and images of a release for amd64 and arm64, bills of'
	@echo '                materials and checksums, in build/dist (check-dist: twice, and compares them)'
	@echo 'make deb        as root: the Debian packages in build/deb (SUITES="bookworm trixie"); installs,'
	@echo '                uses, upgrades, removes and purges them'
	@echo 'make rpm        as root: the RPM packages in build/rpm, with the libraries of Debian; builds them'
	@echo '                twice, installs, uses and removes them in another root'
	@echo '                (dist, deb, rpm build in bare Debian roots in build/roots; the first time these'
	@echo '                need the network, deb always)'
	@echo 'make lint       format, static analysis, and the rules of the structure'
	@echo 'make format     formats the C sources'
	@echo 'make deps       installs the Debian or Ubuntu packages to build with'
	@echo 'make install    to $$(DESTDIR)$$(CNIDIR) and $$(DESTDIR)$$(PREFIX)/bin [/opt/cni/bin, /usr/local]'
	@echo '                share/man and share/doc (with DYNAMIC=1 if it was built so)'
	@echo 'make uninstall  removes what install put there'
	@echo 'make clean      removes build/'

# --- the program in the kernel ---------------------------------------------------------

$(BUILD)/bpf/%.bpf.o: bpf/%.bpf.c $(wildcard bpf/*.h include/*.h vmlinux/*.h)
	@mkdir -p $(@D)
	$(call say,CLANG,$@)$(CLANG) $(BPF_CFLAGS) -c $< -o $@.tmp
	$(Q)$(BPFTOOL) gen object $@ $@.tmp && rm -f $@.tmp # leaves out DWARF, keeps BTF

$(BUILD)/bpf/%.skel.h: $(BUILD)/bpf/%.bpf.o
	$(call say,SKEL,$@)$(BPFTOOL) gen skeleton $< name $*_bpf >$@

# --- the programs that people run ------------------------------------------------------

# A skeleton must exist before the dependencies of those who include it are known. All the others
# are compiled meanwhile.
SKELETON_READERS := $(patsubst %.c,%.o,$(shell grep -rl 'skel\.h"' user tests/fuzz tests/packet))
$(addprefix $(BUILD)/,$(SKELETON_READERS) $(addprefix sanitized/,$(SKELETON_READERS))): | $(SKELETONS)

$(BUILD)/user/%.o: user/%.c Makefile
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

# They contain the page.
$(BUILD)/user/operator/doctor/doctor.o $(BUILD)/sanitized/user/operator/doctor/doctor.o: docs/findings.md

$(BUILD)/man/%.o: man/%.c Makefile
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CPPFLAGS) $(CFLAGS) -MMD -MP -c $< -o $@

$(BUILD)/bpf-portmap: $(PLUGIN_OBJECTS) $(BUILD)/linked
	$(call link,$(CC) $(CFLAGS) $(LDFLAGS) $(STATIC) $(filter %.o,$^) $(LDLIBS_PLUGIN),$(INPUTS))

$(BUILD)/cnirun: $(RUNTIME_OBJECTS) $(BUILD)/linked
	$(call link,$(CC) $(CFLAGS) $(LDFLAGS) $(STATIC) $(filter %.o,$^) $(LDLIBS_RUNTIME),$(INPUTS))

$(BUILD)/cni-ipam: $(IPAM_OBJECTS) $(BUILD)/linked
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(LDFLAGS) $(filter %.o,$^) $(shell $(PKG_CONFIG) --libs libmicrohttpd jansson nettle) -o $@ $(INPUTS)

$(BUILD)/netavark-bpf-portmap: $(NETAVARK_OBJECTS) $(BUILD)/linked
	$(call link,$(CC) $(CFLAGS) $(LDFLAGS) $(STATIC) $(filter %.o,$^) $(LDLIBS_RUNTIME),$(INPUTS))

ifdef BUILD_CC
# Built for another architecture: what runs here is built with this machine's compiler.
.PHONY: native
native:
	$(Q)$(MAKE) --no-print-directory BUILD=$(BUILD)/native CC=$(BUILD_CC) BUILD_CC= \
		$(patsubst $(BUILD)/%,$(BUILD)/native/%,$(PAGES) $(COMPLETIONS))

$(PAGES) $(COMPLETIONS): $(BUILD)/%: native
	@mkdir -p $(@D)
	$(Q)cp $(BUILD)/native/$* $@
else
# The pages say what the tables of options and of verbs do.
$(BUILD)/man/options: $(call objects,man/options.c $(wildcard $(addprefix user/,$(addsuffix /*.c,lib cni conf)))) $(BUILD)/linked
	$(call link,$(CC) $(CFLAGS) $(LDFLAGS) $(STATIC) $(filter %.o,$^) $(LDLIBS_RUNTIME))

$(BUILD)/man/%.5: man/%.5.in $(BUILD)/man/options
	$(call say,MAN,$@)$(BUILD)/man/options <$< >$@

$(BUILD)/man/verbs $(BUILD)/man/completion: %: %.o $(filter-out %/main.o,$(PLUGIN_OBJECTS)) $(BUILD)/linked
	$(call link,$(CC) $(CFLAGS) $(LDFLAGS) $(STATIC) $(filter %.o,$^) $(LDLIBS_PLUGIN))

$(BUILD)/man/%.8: man/%.8.in $(BUILD)/man/verbs
	$(call say,MAN,$@)$(BUILD)/man/verbs <$< >$@

$(BUILD)/completion/%: $(BUILD)/man/completion
	@mkdir -p $(@D)
	$(call say,SHELL,$@)$< $* >$@
endif

# How they were linked last, so that DYNAMIC=1 after a static build is not "up to date".
.PHONY: FORCE
$(BUILD)/linked: export HOW = $(CC) $(LDFLAGS) $(STATIC)
$(BUILD)/linked: FORCE
	@mkdir -p $(@D)
	@printf '%s\n' "$$HOW" | cmp -s - $@ || printf '%s\n' "$$HOW" >$@

# --- tests -----------------------------------------------------------------------------

# Not optimized, because it computes for less time in one run of the tests than optimizing it takes, and
# undefined behaviour is hidden by that; but the rows and the fuzzer of packets compute for longer. A
# sanitizer's report needs lines, no more.
SANITIZE := -O0 -g1 -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer
$(BUILD)/sanitized/tests/packet/%.o $(BUILD)/sanitized/tests/fuzz/%.o: SANITIZE += -O1
UNIT_TESTS := $(patsubst tests/unit/%.c,$(BUILD)/tests/unit/%,$(wildcard tests/unit/*_test.c))
# Everything without I/O on the machine, instrumented; programs' main files excepted.
UNIT_SOURCES := $(filter-out user/runtimes/cnirun/main.c,$(wildcard $(addprefix user/,$(addsuffix /*.c,lib cni conf runtimes/cnirun))) \
	$(wildcard user/plan/*.c) user/datapath/attach/roles.c user/datapath/load/objects.c \
	user/datapath/load/bpf_error.c $(addprefix user/operator/,options.c view/flow_select.c \
	flow_words.c print/format.c items.c print/table.c install/list_text.c conflists.c) $(addprefix user/nat/,engine_chains.c nat_rule.c nft_rule.c legacy_table.c) \
	$(addprefix user/net/,host_settings.c netlink.c netns.c link.c sockets.c))
UNIT_OBJECTS := $(patsubst %.c,$(BUILD)/sanitized/%.o,$(UNIT_SOURCES))

$(BUILD)/sanitized/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CPPFLAGS) $(CFLAGS) $(SANITIZE) -MMD -MP -c $< -o $@

$(BUILD)/tests/unit/%: $(BUILD)/sanitized/tests/unit/%.o $(UNIT_OBJECTS)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(SANITIZE) $^ -lcmocka -ljansson -lnl-3 -lnettle -lbpf -o $@

# The programs as a whole under the sanitizers, for tests that feed them bad input.
$(BUILD)/sanitized/bpf-portmap: $(patsubst $(BUILD)/%,$(BUILD)/sanitized/%,$(PLUGIN_OBJECTS))
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(SANITIZE) $^ $(LDLIBS_SHARED) -o $@

$(BUILD)/sanitized/cnirun: $(patsubst $(BUILD)/%,$(BUILD)/sanitized/%,$(RUNTIME_OBJECTS))
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(SANITIZE) $^ $(LDLIBS_RUNTIME) -o $@

$(BUILD)/sanitized/cni-ipam: $(patsubst $(BUILD)/%,$(BUILD)/sanitized/%,$(IPAM_OBJECTS))
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(SANITIZE) $^ $(shell $(PKG_CONFIG) --libs libmicrohttpd jansson nettle) -o $@

PACKET_FUZZ_OBJECTS := $(patsubst %.c,$(BUILD)/sanitized/%.o,$(filter-out tests/fuzz/json_%,$(wildcard tests/fuzz/*.c)))

$(BUILD)/tests/packet_fuzz: $(PACKET_FUZZ_OBJECTS) $(addprefix $(BUILD)/sanitized/,tests/packet/host.o tests/packet/marked.o tests/packet/seal.o)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(SANITIZE) $^ -lbpf -lelf -lz -o $@

# Those that have the programs in them, and the others, which are the same with FALLBACKS.
PACKET_LOADERS := tests/packet/fixture.c tests/packet/records.c
PACKET_SHARED ?= $(BUILD)
PACKET_OBJECTS := $(patsubst %.c,$(BUILD)/sanitized/%.o,$(PACKET_LOADERS)) \
	$(patsubst %.c,$(PACKET_SHARED)/sanitized/%.o,$(filter-out $(PACKET_LOADERS),$(wildcard tests/packet/*.c)) \
	user/datapath/load/device_layout.c)

$(BUILD)/tests/packet: $(PACKET_OBJECTS)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CC) $(CFLAGS) $(SANITIZE) $^ -lbpf -lelf -lz -o $@

# libFuzzer's targets, with what they test instrumented for it.
FUZZ_SANITIZE := -O1 -g1 -fsanitize=address,undefined -fno-sanitize-recover=undefined
FUZZ_OBJECTS := $(patsubst %.c,$(BUILD)/fuzz/%.o,$(UNIT_SOURCES))
JSON_FUZZERS := $(BUILD)/tests/json_plugin $(BUILD)/tests/json_cnirun

$(BUILD)/fuzz/%.o: %.c Makefile
	@mkdir -p $(@D)
	$(call say,CLANG,$@)$(CLANG) $(CPPFLAGS) $(CFLAGS) $(FUZZ_SANITIZE) -fsanitize=fuzzer-no-link -MMD -MP -c $< -o $@

$(JSON_FUZZERS): $(BUILD)/tests/%: $(BUILD)/fuzz/tests/fuzz/%.o $(FUZZ_OBJECTS)
	@mkdir -p $(@D)
	$(call say,LINK,$@)$(CLANG) $(CFLAGS) $(FUZZ_SANITIZE) -fsanitize=fuzzer $^ -ljansson -lnl-3 -lnettle -lbpf -o $@

$(BUILD)/fuzz/dictionary: tests/fuzz/seeds $(wildcard conf/* user/*/*.c user/*/*/*.c tests/unit/*_test.*)
	$(call say,SEEDS,$(BUILD)/fuzz)tests/fuzz/seeds

# Not every clang comes with it.
libfuzzer = $(shell echo 'int LLVMFuzzerTestOneInput(const char *d, long n) { return !d || n; }' | \
	$(CLANG) -x c -fsanitize=fuzzer - -o /dev/null 2>/dev/null && echo yes)

NET_TOOLS := $(patsubst tests/net/%.c,$(BUILD)/tests/%,$(filter-out %.bpf.c,$(wildcard tests/net/*.c)))

$(BUILD)/tests/%.bpf.o: tests/net/%.bpf.c $(wildcard tests/net/*.h bpf/*.h include/*.h vmlinux/*.h)
	@mkdir -p $(@D)
	$(call say,CLANG,$@)$(CLANG) $(BPF_CFLAGS) -c $< -o $@

$(BUILD)/tests/%.skel.h: $(BUILD)/tests/%.bpf.o
	$(call say,SKEL,$@)$(BPFTOOL) gen skeleton $< name $*_bpf >$@

$(BUILD)/tests/flood: $(BUILD)/tests/flood.skel.h
$(BUILD)/tests/tcx: $(BUILD)/tests/foreign.skel.h
$(BUILD)/tests/loaded: $(BUILD)/tests/loaded.skel.h

# Statically linked like the plugin, they need what it brings along for Debian 13's libelf, too.
$(BUILD)/tests/%: tests/net/%.c user/datapath/load/libelf_static.c $(wildcard tests/*.h tests/net/*.h include/*.h)
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CPPFLAGS) $(CFLAGS) $(STATIC) $(filter %.c,$^) -lbpf -lelf -lz $(STATIC_ZSTD) -o $@

DIFFERENTIAL := $(wildcard tests/differential/*.c)

$(BUILD)/tests/differential: $(DIFFERENTIAL) $(wildcard tests/*.h tests/differential/*.h tests/net/tool.h)
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CPPFLAGS) $(CFLAGS) $(DIFFERENTIAL) -o $@

check: deps-check
	$(Q)tests/check unit packet fuzz differential net engines

check-engines: deps-check
	$(Q)tests/check engines

# Podman 5 in a root of Debian 13. Where apt-get has it, check-engines runs these too.
.PHONY: check-podman5
check-podman5: roots-deps net-tests
	$(Q)tests/engines/podman5

check-unit check-packet check-net check-fuzz check-differential: check-%:
	$(Q)tests/check $*

# Other kernels in qemu: no sanitizers, which are slow there.
$(BUILD)/tests/packet-plain: user/datapath/load/device_layout.c $(wildcard tests/*.h tests/packet/*.c tests/packet/*.h bpf/*.h include/*.h) $(SKELETONS)
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CPPFLAGS) $(CFLAGS) $(filter %.c,$^) -lbpf -lelf -lz -o $@

$(BUILD)/tests/verify: tests/kernel/verify.c
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CPPFLAGS) $(CFLAGS) $< -lbpf -lelf -lz -o $@

# What a packet costs in each program.
$(BUILD)/tests/programs.bpf.o: tests/bench/programs/programs.bpf.c $(wildcard tests/bench/programs/*.h vmlinux/*.h)
	@mkdir -p $(@D)
	$(call say,CLANG,$@)$(CLANG) $(BPF_CFLAGS) -c $< -o $@

# The programs with a count of their look-ups, insertions and deletions: programs --count.
$(BUILD)/tests/counted.bpf.o: tests/bench/programs/counted.bpf.c tests/bench/programs/operations.h \
		$(wildcard bpf/*.c bpf/*.h include/*.h vmlinux/*.h)
	@mkdir -p $(@D)
	$(call say,CLANG,$@)$(CLANG) $(BPF_CFLAGS) -Itests/bench/programs -c $< -o $@

$(BUILD)/tests/programs: $(addprefix tests/bench/programs/,programs.c measured.c traffic.c) \
		user/datapath/load/device_layout.c \
		$(addprefix tests/packet/,host.c frame.c) $(BUILD)/tests/programs.skel.h \
		$(wildcard tests/bench/programs/*.h tests/packet/*.h include/*.h)
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CPPFLAGS) -Itests $(CFLAGS) $(filter %.c,$^) -lbpf -lelf -lz -o $@

KERNEL_TOOLS = $(NET_TOOLS) $(BUILD)/tests/packet-plain $(BUILD)/tests/verify

check-kernel: deps-check
	$(Q)tests/deps $(PACKAGES_KERNEL)
	$(Q)$(MAKE) --no-print-directory all net-tests $(KERNEL_TOOLS)
	$(Q)case '$(KERNELS)' in *-arm64*) $(MAKE) --no-print-directory arm64-tests ;; esac
	$(Q)tests/kernel/run

# In a root that has the compiler and the libraries for arm64.
.PHONY: arm64-tests kernel-tools
kernel-tools: $(BUILD)/bpf-portmap $(BUILD)/cnirun $(BUILD)/netavark-bpf-portmap $(KERNEL_TOOLS)
arm64-tests: roots-deps
	$(Q)tests/deps qemu-system-arm
	$(Q)packaging/root -o -a arm64 -p '$(PACKAGES_CROSS)' -b $(CURDIR):/project bookworm \
		make --no-print-directory -C /project BUILD=build/arm64 CC=aarch64-linux-gnu-gcc kernel-tools

# CLANGS= which versions.
check-clang: deps-check
	$(Q)$(MAKE) --no-print-directory all
	$(Q)tests/check clang

# What tests/check asks for before it runs a layer.
.PHONY: unit-tests packet-tests fuzz-tests differential-tests net-tests engines-tests clang-tests
unit-tests: $(UNIT_TESTS) $(BUILD)/sanitized/cnirun
packet-tests: $(BUILD)/tests/packet $(BUILD)/tests/verify
	$(Q)$(MAKE) --no-print-directory BUILD=$(BUILD)/fallbacks PACKET_SHARED=$(BUILD) FALLBACKS=1 \
		$(BUILD)/fallbacks/tests/packet
fuzz-tests: $(BUILD)/tests/packet_fuzz
	$(Q)$(if $(libfuzzer),$(MAKE) --no-print-directory $(JSON_FUZZERS) $(BUILD)/fuzz/dictionary)
net-tests: all $(NET_TOOLS) $(BUILD)/sanitized/bpf-portmap $(if $(IPAM),$(BUILD)/sanitized/cni-ipam)
differential-tests: net-tests $(BUILD)/tests/differential
engines-tests: net-tests image
	$(Q)tests/engines/install

clang-tests: $(BUILD)/tests/verify

# FUZZ_SECONDS= for each of the fuzzers, FUZZ_SEED= to repeat what was found.
fuzz: fuzz-tests
	$(Q)tests/fuzz/run $(or $(FUZZ_SECONDS),60) $(FUZZ_SEED)

# SOAK_SECONDS= how long, SOAK_SEED= of the first episode; by default another one each time
soak: deps-check
	$(Q)$(MAKE) --no-print-directory differential-tests
	$(Q)tests/differential/run --seconds $(or $(SOAK_SECONDS),3600) \
		--seed $(or $(SOAK_SEED),$$(date +%s)) --shrink 600

demo:
	$(Q)tests/deps $(PACKAGES_STATIC) $(PACKAGES_DEMO)
	$(Q)$(MAKE) --no-print-directory $(BUILD)/bpf-portmap $(BUILD)/cnirun
	$(Q)tests/demo

# --- the benchmark ---------------------------------------------------------------------

BENCH_TOOLS := $(patsubst tests/bench/%.c,$(BUILD)/bench/%,$(filter-out %.bpf.c,$(wildcard tests/bench/*.c))) \
	$(BUILD)/tests/programs $(BUILD)/tests/counted.bpf.o

$(BUILD)/bench/%.bpf.o: tests/bench/%.bpf.c $(wildcard tests/bench/*.h vmlinux/*.h)
	@mkdir -p $(@D)
	$(call say,CLANG,$@)$(CLANG) $(BPF_CFLAGS) -c $< -o $@

$(BUILD)/bench/%.skel.h: $(BUILD)/bench/%.bpf.o
	$(call say,SKEL,$@)$(BPFTOOL) gen skeleton $< name $*_bpf >$@

BENCH_SKELETONS := $(patsubst tests/bench/%.bpf.c,$(BUILD)/bench/%.skel.h,$(wildcard tests/bench/*.bpf.c))

$(BUILD)/bench/%: tests/bench/%.c $(wildcard tests/*.h tests/bench/*.h tests/net/tool.h) $(BENCH_SKELETONS)
	@mkdir -p $(@D)
	$(call say,CC,$@)$(CC) $(CPPFLAGS) -Itests/net $(CFLAGS) $(LDFLAGS) $< -lbpf -lelf -lz -o $@

# The kernel counts the memory of who starts a process as the process's own: little, hence.
$(BUILD)/bench/spawn $(BUILD)/bench/nothing: LDFLAGS += -static

.PHONY: bench-tools
bench-tools: $(BENCH_TOOLS)

bench:
	$(Q)tests/deps $(PACKAGES_BUILD) $(PACKAGES_BENCH)
	$(Q)$(MAKE) --no-print-directory all bench-tools $(BUILD)/tests/tcx $(BUILD)/tests/peer \
		$(BUILD)/tests/callers $(BUILD)/tests/world $(BUILD)/tests/fill
	$(Q)tests/bench/newest $(BUILD)/bench/newest
	$(Q)tests/bench/run

# --- releases and packages, in bare Debian roots -----------------------------------------

.PHONY: version dist check-dist deb rpm roots-deps
version:
	@echo $(VERSION)

roots-deps:
	$(Q)tests/deps $(PACKAGES_ROOT)

dist: roots-deps
	$(Q)packaging/dist $(VERSION) '$(PACKAGES_CROSS)'
	$(Q)ls -l $(BUILD)/dist

check-dist: roots-deps
	$(Q)tests/packages/dist $(VERSION) '$(PACKAGES_CROSS)'

# SUITES= of Debian.
deb: roots-deps
	$(Q)for suite in $(or $(SUITES),bookworm trixie); do \
		packaging/deb $(VERSION) $$suite && tests/packages/deb $$suite || exit; done

# IMAGE= the name, with a registry; BUILD=build/arm64 for that architecture.
.PHONY: image
IMAGE ?= localhost/bpf-portmap:$(VERSION)
image: $(BUILD)/bpf-portmap
	$(Q)packaging/image $< $(IMAGE) $(BUILD)/bpf-portmap-image.tar
	$(Q)cd $(BUILD) && sha256sum bpf-portmap-image.tar >bpf-portmap-image.tar.sha256
	$(Q)ls -l $(BUILD)/bpf-portmap-image.tar

# What each program of this machine's build is linked with.
.PHONY: bill
bill: all
	$(Q)for program in $(addprefix $(BUILD)/,bpf-portmap cnirun netavark-bpf-portmap) $(IPAM); do \
		packaging/bill $(VERSION) $$program $$program >$$program.spdx.json || exit; done
	$(Q)ls -l $(BUILD)/*.spdx.json

rpm: roots-deps
	$(Q)packaging/rpm $(VERSION) '$(PACKAGES_STATIC)'
	$(Q)tests/packages/rpm $(VERSION) '$(PACKAGES_STATIC)'

# --- what a developer runs -------------------------------------------------------------

C_FILES = $(shell git ls-files '*.c' '*.h' | grep -v '^vmlinux/')

lint: $(SKELETONS)
	$(Q)tests/lint

format:
	$(Q)$(CLANG_FORMAT) -i $(C_FILES)

deps:
	$(Q)tests/deps $(PACKAGES_BUILD)

deps-lint:
	$(Q)tests/deps $(PACKAGES_BUILD) $(PACKAGES_LINT)

deps-check:
	$(Q)tests/deps $(PACKAGES_BUILD) $(PACKAGES_CHECK)

COMPLETION_BASH = $(PREFIX)/share/bash-completion/completions/bpf-portmap
COMPLETION_ZSH = $(PREFIX)/share/zsh/site-functions/_bpf-portmap
COMPLETION_FISH = $(PREFIX)/share/fish/vendor_completions.d/bpf-portmap.fish

# What calls the plugin by itself: units, a udev rule, and a hook of two dispatchers.
LIB := $(DESTDIR)$(PREFIX)/lib
UNITS := $(patsubst conf/system/%,$(LIB)/systemd/system/%,$(wildcard conf/system/bpf-portmap*.service conf/system/*.timer))
RULES := $(LIB)/udev/rules.d/90-bpf-portmap.rules
HOOKS := $(LIB)/NetworkManager/dispatcher.d/90-bpf-portmap $(LIB)/networkd-dispatcher/routable.d/90-bpf-portmap
IPAM_UNITS := $(addprefix $(LIB)/systemd/system/,cni-ipam.service cni-ipam.socket)

.PHONY: $(UNITS) $(RULES) $(HOOKS) $(IPAM_UNITS)
$(UNITS) $(RULES) $(IPAM_UNITS): MODE := 0644
$(HOOKS): MODE := 0755
$(UNITS) $(RULES) $(HOOKS) $(IPAM_UNITS):
	@install -d $(@D)
	sed 's|/opt/cni/bin|$(CNIDIR)|; s|/usr/local/bin|$(PREFIX)/bin|' conf/system/$(@F) >$@
	@chmod $(MODE) $@

# In one step, as somebody may call it at any moment.
define install_program
	install -D -m 0755 $(1) $(DESTDIR)$(2).new
	mv -f $(DESTDIR)$(2).new $(DESTDIR)$(2)
endef

install-ipam: all $(IPAM_UNITS)
	$(call install_program,$(BUILD)/cni-ipam,$(PREFIX)/bin/cni-ipam)
	install -D -m 0644 man/cni-ipam.8 $(DESTDIR)$(PREFIX)/share/man/man8/cni-ipam.8

install: all $(UNITS) $(RULES) $(HOOKS) $(if $(IPAM),install-ipam)
	$(call install_program,$(BUILD)/bpf-portmap,$(CNIDIR)/bpf-portmap)
	$(call install_program,$(BUILD)/cnirun,$(PREFIX)/bin/cnirun)
	install -D -m 0644 $(BUILD)/man/bpf-portmap.8 $(DESTDIR)$(PREFIX)/share/man/man8/bpf-portmap.8
	install -D -m 0644 $(BUILD)/man/bpf-portmap.conf.5 $(DESTDIR)$(PREFIX)/share/man/man5/bpf-portmap.conf.5
	install -D -m 0644 man/cnirun.1 $(DESTDIR)$(PREFIX)/share/man/man1/cnirun.1
	$(call install_program,$(BUILD)/netavark-bpf-portmap,$(NETAVARKDIR)/bpf-portmap)
	install -D -m 0644 man/netavark-bpf-portmap.8 $(DESTDIR)$(PREFIX)/share/man/man8/netavark-bpf-portmap.8
	install -D -m 0644 $(BUILD)/completion/bash $(DESTDIR)$(COMPLETION_BASH)
	install -D -m 0644 $(BUILD)/completion/zsh $(DESTDIR)$(COMPLETION_ZSH)
	install -D -m 0644 $(BUILD)/completion/fish $(DESTDIR)$(COMPLETION_FISH)
	install -d $(addprefix $(DESTDIR)$(DOCUMENTATION)/,docs LICENSES)
	install -m 0644 README.md CHANGELOG.md SECURITY.md $(DESTDIR)$(DOCUMENTATION)
	find conf -type f -exec install -D -m 0644 {} $(DESTDIR)$(DOCUMENTATION)/{} \;
	install -m 0644 docs/*.md $(DESTDIR)$(DOCUMENTATION)/docs
	install -m 0644 LICENSES/*.txt $(DESTDIR)$(DOCUMENTATION)/LICENSES
	@$(if $(DESTDIR),:,echo 'To bring the new programs to the interfaces now: $(CNIDIR)/bpf-portmap upgrade (docs/upgrading.md)')

uninstall:
	rm -f $(DESTDIR)$(CNIDIR)/bpf-portmap $(DESTDIR)$(PREFIX)/bin/cnirun \
		$(DESTDIR)$(PREFIX)/share/man/man8/bpf-portmap.8 \
		$(DESTDIR)$(PREFIX)/share/man/man5/bpf-portmap.conf.5 \
		$(DESTDIR)$(PREFIX)/share/man/man1/cnirun.1 \
		$(DESTDIR)$(NETAVARKDIR)/bpf-portmap $(DESTDIR)$(PREFIX)/share/man/man8/netavark-bpf-portmap.8 \
		$(DESTDIR)$(PREFIX)/bin/cni-ipam $(DESTDIR)$(PREFIX)/share/man/man8/cni-ipam.8 \
		$(addprefix $(DESTDIR),$(COMPLETION_BASH) $(COMPLETION_ZSH) $(COMPLETION_FISH)) \
		$(UNITS) $(RULES) $(HOOKS) $(IPAM_UNITS)
	rm -rf $(DESTDIR)$(DOCUMENTATION)

clean:
	rm -rf $(BUILD)

-include $(shell find $(BUILD) -path '$(BUILD)/roots' -prune -o -type f -name '*.d' -print 2>/dev/null)
