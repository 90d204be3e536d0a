# weir. `make` builds, `make test` proves, `make run` shows; `make help` lists the rest.
VERSION := 0.1.0
BUILD ?= release
PREFIX ?= /usr/local
DESTDIR ?=
SYSCONFDIR ?= /etc
UNITDIR ?= /usr/lib/systemd/system
CC = gcc

FOLDERS := admin http acl cache intercept iptables
LIBRARIES := libmnl libcap-ng libsystemd libcares libxxhash libpcre2-8 libisal
WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla \
	-Wswitch-enum -Wundef -Werror
FLAGS.release := -O2 -g -D_FORTIFY_SOURCE=2 -fstack-protector-strong
FLAGS.asan := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
FLAGS.tsan := -O1 -g -fsanitize=thread -fno-omit-frame-pointer
CFLAGS ?=
Q := $(if $(V),,@)# V=1 shows whole commands
COMPILE = $(CC) -std=gnu17 -D_GNU_SOURCE -DWEIR_VERSION='"$(VERSION)"' -I. -fPIE -pthread $(WARNINGS) \
	$(FLAGS.$(BUILD)) $(shell pkg-config --cflags $(LIBRARIES) 2>/dev/null) $(CFLAGS)
LINK = $(CC) -pie -Wl,-z,relro,-z,now -pthread $(FLAGS.$(BUILD)) $(LDFLAGS)
LIBS = $(shell pkg-config --libs $(LIBRARIES) 2>/dev/null) -lev -lm

OUT := build/$(BUILD)
SOURCES := $(foreach folder,$(FOLDERS),$(wildcard $(folder)/*.c))
OBJECTS := $(patsubst %.c,$(OUT)/%.o,$(filter-out admin/main.c,$(SOURCES)))
UNIT_SOURCES := $(wildcard tests/unit/*.c tests/unit/*/*.c)
UNIT_OBJECTS := $(patsubst %.c,$(OUT)/%.o,$(UNIT_SOURCES))
# The daemon over a fake loop, clock and network: tests/replay/X.c is linked in place of the real X.c.
REPLAY_OBJECTS := $(patsubst %.c,$(OUT)/%.o,$(wildcard tests/replay/*.c))
REPLAY_FAKED := $(patsubst %,$(OUT)/%.o,admin/clock intercept/loop intercept/dial intercept/origdst \
	intercept/netlink intercept/access_log)
FUZZERS := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/*.c))

.PHONY: all help test unit replay netns cases torture peers bench bench-store run lint format asan tsan fuzz install uninstall clean packages-build
.DELETE_ON_ERROR:

all: packages-build
	@$(MAKE) --no-print-directory -j$$(nproc) $(OUT)/weir

help:
	@echo 'make            build (installs the packages it needs when root); V=1 shows the commands'
	@echo 'make run        a LAN, a gateway and an origin in namespaces, with weir on the gateway; ONCE=1 leaves at the end'
	@echo 'make test       unit, replay and netns tests, the conformance cases and the torture'
	@echo 'make cases      the conformance cases alone; make peers: through the other installed caches as well'
	@echo 'make bench      beside Squid and nginx on one interception path (installs both)'
	@echo 'make bench-store  stores on disk beside Squid, nginx and Traffic Server'
	@echo 'make lint asan tsan fuzz    format, arrows and static checks; sanitizers; fuzzers (FUZZ_SECONDS each)'
	@echo 'make install    to $$(DESTDIR)$$(PREFIX); make uninstall'

packages-build:
	@tools/install-packages build

$(OUT)/%.o: %.c
	@mkdir -p $(@D)
	@echo "  CC   $<"
	$(Q)$(COMPILE) -MMD -MP -c -o $@ $<

$(OUT)/weir: $(OUT)/admin/main.o $(OBJECTS)
	@echo "  LINK $@"
	$(Q)$(LINK) -o $@ $^ $(LIBS)

$(OUT)/unit: $(UNIT_OBJECTS) $(OBJECTS)
	@echo "  LINK $@"
	$(Q)$(LINK) -o $@ $^ $(LIBS) -lcunit

$(OUT)/weir-replay: $(REPLAY_OBJECTS) $(filter-out $(REPLAY_FAKED),$(OBJECTS))
	@echo "  LINK $@"
	$(Q)$(LINK) -Wl,--wrap=close -o $@ $^ $(LIBS)

# How fast a volume is there again: see tests/bench/restart.c.
$(OUT)/bench-restart: $(OUT)/tests/bench/restart.o $(OBJECTS)
	@echo "  LINK $@"
	$(Q)$(LINK) -o $@ $^ $(LIBS)

# A store filled by itself: see tests/bench/fill.c.
$(OUT)/bench-fill: $(OUT)/tests/bench/fill.o $(OBJECTS)
	@echo "  LINK $@"
	$(Q)$(LINK) -o $@ $^ $(LIBS)

# What tests preload into the daemon to make its disks misbehave.
build/faults.so: tests/faults/faults.c tests/faults/call.tbl
	@mkdir -p $(@D)
	@echo "  LINK $@"
	$(Q)$(CC) -std=gnu17 -D_GNU_SOURCE -I. -O2 -g -fPIC -shared -pthread $(WARNINGS) -o $@ $<

build/load: $(wildcard tests/torture/*.[ch] tests/torture/*.tbl)
	@mkdir -p $(@D)
	@echo "  LINK $@"
	$(Q)$(CC) -std=gnu17 -D_GNU_SOURCE -I. -O2 -g -pthread $(WARNINGS) -o $@ $(filter %.c,$^) -lm

-include $(patsubst %.o,%.d,$(OBJECTS) $(UNIT_OBJECTS) $(REPLAY_OBJECTS) $(OUT)/admin/main.d)

unit:
	@tools/install-packages build test
	@$(MAKE) --no-print-directory -j$$(nproc) $(OUT)/unit
	$(OUT)/unit

REPLAY_TESTS ?= tests/replay
replay:
	@tools/install-packages build test
	@$(MAKE) --no-print-directory -j$$(nproc) $(OUT)/weir-replay
	WEIR_REPLAY=$(OUT)/weir-replay /usr/bin/python3 -m pytest -q -p no:cacheprovider $(REPLAY_TESTS)

NETNS_TESTS ?= tests/netns
netns: all
	@tools/install-packages build run test
	/usr/bin/python3 -m pytest -q -p no:cacheprovider $(NETNS_TESTS)

# The daemon, its disks misbehaving, killed and started again, among many clients; long: tests/torture/run.py.
torture: all build/faults.so build/load
	@tools/install-packages build run test
	/usr/bin/python3 -m pytest -q -p no:cacheprovider tests/faults tests/torture

# What the standards ask of a shared cache, in real time; `peers` beside the other caches that are installed.
cases: all
	@tools/install-packages build run test
	/usr/bin/python3 tests/cases/run.py $(CASES)
peers: all
	@tools/install-packages build run test
	/usr/bin/python3 tests/cases/run.py --peers --differences $(CASES)

test: unit replay netns cases torture

# Side by side with Squid and nginx. Installing these two starts their services.
bench: all
	@tools/install-packages run bench
	/usr/bin/python3 tests/bench/compare.py $(BENCH)

# What a store on disk costs beside Squid's (ufs and rock), nginx's and Traffic Server's; what: BENCH=hits, BENCH=objects.
bench-store: all $(OUT)/bench-fill
	@tools/install-packages run bench bench-store
	/usr/bin/python3 tests/bench/store.py $(or $(BENCH),hits)

run: all
	@tools/install-packages run
	/usr/bin/python3 tests/lab/run.py $(if $(ONCE),--once)

# ---- checks ----

CODE := $(wildcard $(addsuffix /*.[ch],$(FOLDERS)) tests/*/*.[ch] tests/*/*/*.[ch])
SHELL_SCRIPTS := tools/install-packages .ci/run

lint:
	@tools/install-packages build lint test
	clang-format --dry-run -Werror $(CODE)
	tools/lint-arrows
	@$(MAKE) --no-print-directory lint-manuals lint-units
	shellcheck $(SHELL_SCRIPTS)
	@$(MAKE) --no-print-directory -k -j$$(nproc) tidy

format:
	clang-format -i $(CODE)

tidy: $(patsubst %.c,build/tidy/%.ok,$(SOURCES))
.PHONY: tidy
build/tidy/%.ok: %.c .clang-tidy
	@mkdir -p $(@D)
	clang-tidy --quiet $< -- -std=gnu17 -D_GNU_SOURCE -DWEIR_VERSION='"lint"' -I. 2>/dev/null
	@clang -std=gnu17 -D_GNU_SOURCE -I. -MM -MT $@ -MF $(@:.ok=.d) $< && touch $@
-include $(patsubst %.c,build/tidy/%.d,$(SOURCES))

asan:
	@$(MAKE) --no-print-directory unit replay BUILD=asan
tsan:
	@$(MAKE) --no-print-directory unit replay BUILD=tsan

# ---- fuzzers: `make fuzz` runs each for FUZZ_SECONDS; new inputs go to build/fuzz, findings stop it ----

FUZZ_SECONDS ?= 60
FUZZ_FLAGS := -std=gnu17 -D_GNU_SOURCE -DWEIR_VERSION='"fuzz"' -I. -g -O1 \
	-fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all
# What binds functions of all folders together is of no use to a fuzzer.
FUZZ_SOURCES := $(filter-out admin/main.c admin/validate.c admin/command%,$(wildcard admin/*.c http/*.c acl/*.c)) \
	$(addprefix cache/,freshness.c head_record.c key.c memory.c pack.c parcel.c policy.c purge.c \
	purge_journal.c record.c rules.c stored_head.c update.c vary.c) \
	intercept/refresh_line.c intercept/response_line.c intercept/store_rules.c

fuzz:
	@tools/install-packages build fuzz
	@$(MAKE) --no-print-directory $(addprefix fuzz-,$(FUZZERS))
fuzz-%: build/fuzz/%
	@mkdir -p build/fuzz/corpus/$*
	$< -max_total_time=$(FUZZ_SECONDS) -timeout=10 -rss_limit_mb=1024 -print_final_stats=1 \
		-artifact_prefix=build/fuzz/$*- $(addprefix -dict=,$(wildcard tests/fuzz/$*.dict)) build/fuzz/corpus/$* tests/fuzz/corpus/$*
build/fuzz/%: tests/fuzz/%.c $(FUZZ_SOURCES)
	@mkdir -p $(@D)
	clang $(FUZZ_FLAGS) -o $@ $^ $(shell pkg-config --libs libpcre2-8 libisal libxxhash)
.PRECIOUS: build/fuzz/%

# ---- installing ----

include docs/docs.mk
include systemd/systemd.mk
MANDIR ?= $(PREFIX)/share/man

# An existing configuration is left alone.
install: all manuals install-systemd
	install -d $(DESTDIR)$(BINDIR) $(DESTDIR)$(SYSCONFDIR)/weir $(DESTDIR)$(MANDIR)/man8 $(DESTDIR)$(MANDIR)/man5
	install -m 755 $(OUT)/weir $(DESTDIR)$(BINDIR)/weir
	install -m 644 build/docs/weir.8 $(DESTDIR)$(MANDIR)/man8/weir.8
	install -m 644 build/docs/weir.conf.5 $(DESTDIR)$(MANDIR)/man5/weir.conf.5
	install -m 644 docs/weir.conf.example $(DESTDIR)$(SYSCONFDIR)/weir/weir.conf.example
	test -e $(DESTDIR)$(SYSCONFDIR)/weir/weir.conf || \
		install -m 644 docs/weir.conf.example $(DESTDIR)$(SYSCONFDIR)/weir/weir.conf
ifeq ($(DESTDIR),)
	if command -v systemd-sysusers >/dev/null; then systemd-sysusers $(SYSUSERSDIR)/weir.conf; fi
	if [ -d /run/systemd/system ]; then systemd-tmpfiles --create $(TMPFILESDIR)/weir.conf && systemctl daemon-reload; fi
endif

uninstall:
ifeq ($(DESTDIR),)
	if [ -d /run/systemd/system ]; then systemctl disable --now weir weir-rules; fi
	if [ -x $(BINDIR)/weir ] && [ "$$(id -u)" = 0 ]; then $(BINDIR)/weir rules remove; fi
endif
	@$(MAKE) --no-print-directory uninstall-systemd
	rm -f $(DESTDIR)$(BINDIR)/weir $(DESTDIR)$(MANDIR)/man8/weir.8 $(DESTDIR)$(MANDIR)/man5/weir.conf.5 \
		$(DESTDIR)$(SYSCONFDIR)/weir/weir.conf.example
ifeq ($(DESTDIR),)
	if [ -d /run/systemd/system ]; then systemctl daemon-reload; fi
endif

clean:
	rm -rf build
