// Fills the rule templates (iptables.tmpl, nft.tmpl) from a plan. Pure: the same plan gives the same text.
#pragma once

#include "iptables/plan.h"

#include <stdio.h>

// For iptables-restore --noflush or ip6tables-restore --noflush. Writes nothing for a family that is off.
void template_write_iptables(FILE *out, const struct plan *plan, enum family family);
// For nft -f: one transaction that replaces the table.
void template_write_nft(FILE *out, const struct plan *plan);
