# The units, with the paths of this installation filled in. UNITDIR is the systemd directory of the host; PREFIX
# does not move it, because systemd would not look there.
SYSTEMD_UNITS := weir.service weir-rules.service
SYSUSERSDIR ?= /usr/lib/sysusers.d
TMPFILESDIR ?= /usr/lib/tmpfiles.d
BINDIR ?= $(PREFIX)/sbin

.PHONY: install-systemd uninstall-systemd lint-units

install-systemd:
	install -d $(DESTDIR)$(UNITDIR) $(DESTDIR)$(SYSUSERSDIR) $(DESTDIR)$(TMPFILESDIR)
	for unit in $(SYSTEMD_UNITS); do \
		sed -e 's|@BINDIR@|$(BINDIR)|g' -e 's|@SYSCONFDIR@|$(SYSCONFDIR)|g' systemd/$$unit.in \
			>$(DESTDIR)$(UNITDIR)/$$unit && chmod 644 $(DESTDIR)$(UNITDIR)/$$unit || exit 1; \
	done
	install -m 644 systemd/weir.sysusers $(DESTDIR)$(SYSUSERSDIR)/weir.conf
	install -m 644 systemd/weir.tmpfiles $(DESTDIR)$(TMPFILESDIR)/weir.conf

uninstall-systemd:
	rm -f $(addprefix $(DESTDIR)$(UNITDIR)/,$(SYSTEMD_UNITS)) $(DESTDIR)$(SYSUSERSDIR)/weir.conf \
		$(DESTDIR)$(TMPFILESDIR)/weir.conf

# The units as they are installed, beside the targets of this system. systemd-analyze ends with 0 on an unknown key.
UNITS_ROOT := $(CURDIR)/build/units
lint-units:
	rm -rf $(UNITS_ROOT)
	$(MAKE) -s --no-print-directory install DESTDIR=$(UNITS_ROOT) PREFIX=/usr UNITDIR=/usr/lib/systemd/system
	cp -an /usr/lib/systemd/system/. $(UNITS_ROOT)/usr/lib/systemd/system/
	systemd-analyze verify --man=no --root=$(UNITS_ROOT) $(SYSTEMD_UNITS) 2>&1 | { ! grep weir; }
