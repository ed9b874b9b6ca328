/**
 * The parts of the product that it loads when they are needed. Loaded now, they are there at once in a simulation, whose
 * clock does not wait for files.
 */
import "../../src/datastore/kube/copying-store.ts";
import "../../src/firewall/guard-rules.ts";
import "../../src/firewall/nat-rules.ts";
import "../../src/firewall/source-prefixes.ts";
import "../../src/kube/orchestrator-node.ts";
import "../../src/linux/conntrack.ts";
import "../../src/linux/nftables/commit.ts";
import "../../src/linux/rtnetlink/link-removal.ts";
import "../../src/log/log-settings.ts";
import "../../src/plugin/await-policy-setup.ts";
import "../../src/plugin/check.ts";
import "../../src/plugin/former-node.ts";
import "../../src/plugin/further-sources.ts";
import "../../src/plugin/gc.ts";
import "../../src/plugin/pod-facts.ts";
import "../../src/plugin/require-policy-table.ts";
import "../../src/plugin/status.ts";
import "../../src/plugin/without-ipam.ts";
