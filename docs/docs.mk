# The manual pages: templates whose tables come from the *.tbl files. `make manuals`; `make lint-manuals`.
# Included by the Makefile, which sets WARNINGS; what is made stands in build/docs.
MANUALS := build/docs/weir.8 build/docs/weir.conf.5

.PHONY: manuals lint-manuals
manuals: $(MANUALS)

build/docs/manual: docs/manual.c $(wildcard admin/*.tbl cache/*.tbl intercept/*.tbl)
	@mkdir -p $(@D)
	$(CC) -std=gnu17 -O1 -I. $(WARNINGS) -o $@ $<

build/docs/%: docs/%.in build/docs/manual
	build/docs/manual < $< > $@

lint-manuals: $(MANUALS)
	mandoc -T lint -W warning $(MANUALS)
