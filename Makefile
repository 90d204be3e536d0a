# weir. `make` builds, `make test` proves, `make run` shows; `make help` lists the rest.
VERSION := 0.1.0
BUILD ?= release
PREFIX ?= /usr/local
DESTDIR ?=
SYSCONFDIR ?= /etc
UNITDIR ?= /usr/lib/systemd/system
CC = gcc

FOLDERS := admin http acl cache intercept iptables
LIBRARIES := libmnl libcap-ng libsystemd libcares libxxhash
WARNINGS := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith -Wvla \
	-Wswitch-enum -Wundef -Werror
FLAGS.release := -O2 -g -D_FORTIFY_SOURCE=2 -fstack-protector-strong
FLAGS.asan := -O1 -g -fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer
FLAGS.tsan := -O1 -g -fsanitize=thread -fno-omit-frame-pointer
CFLAGS ?=
COMPILE = $(CC) -std=gnu17 -D_GNU_SOURCE -DWEIR_VERSION='"$(VERSION)"' -I. -fPIE -pthread $(WARNINGS) \
	$(FLAGS.$(BUILD)) $(shell pkg-config --cflags $(LIBRARIES) 2>/dev/null) $(CFLAGS)
LINK = $(CC) -pie -Wl,-z,relro,-z,now -pthread $(FLAGS.$(BUILD)) $(LDFLAGS)
LIBS = $(shell pkg-config --libs $(LIBRARIES) 2>/dev/null) -lev -lm

OUT := build/$(BUILD)
SOURCES := $(foreach folder,$(FOLDERS),$(wildcard $(folder)/*.c))
OBJECTS := $(patsubst %.c,$(OUT)/%.o,$(filter-out admin/main.c,$(SOURCES)))
UNIT_SOURCES := $(wildcard tests/unit/*.c tests/unit/*/*.c)
UNIT_OBJECTS := $(patsubst %.c,$(OUT)/%.o,$(UNIT_SOURCES))
FUZZERS := $(patsubst tests/fuzz/%.c,%,$(wildcard tests/fuzz/*.c))

.PHONY: all help test unit netns run lint format asan tsan fuzz install uninstall clean packages-build
.DELETE_ON_ERROR:

all: packages-build
	@$(MAKE) --no-print-directory $(OUT)/weir

help:
	@echo 'make            build (installs the packages it needs when root)'
	@echo 'make run        a LAN, a gateway and an origin in namespaces, with weir on the gateway; ONCE=1 leaves at the end'
	@echo 'make test       unit and netns tests'
	@echo 'make lint asan tsan fuzz    format, arrows and static checks; sanitizers; fuzzers (FUZZ_SECONDS each)'
	@echo 'make install    to $$(DESTDIR)$$(PREFIX); make uninstall'

packages-build:
	@tools/install-packages build

$(OUT)/%.o: %.c
	@mkdir -p $(@D)
	$(COMPILE) -MMD -MP -c -o $@ $<

$(OUT)/weir: $(OUT)/admin/main.o $(OBJECTS)
	$(LINK) -o $@ $^ $(LIBS)

$(OUT)/unit: $(UNIT_OBJECTS) $(OBJECTS)
	$(LINK) -o $@ $^ $(LIBS) -lcunit

-include $(patsubst %.o,%.d,$(OBJECTS) $(UNIT_OBJECTS) $(OUT)/admin/main.d)

unit:
	@tools/install-packages build test
	@$(MAKE) --no-print-directory $(OUT)/unit
	$(OUT)/unit

clean:
	rm -rf build
