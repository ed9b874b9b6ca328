import { findInstalledNetwork, readNetworkConfig } from "../../../config/installed-network.ts";
import { PluginError } from "../../../errors.ts";
import { identity } from "../../../identity.ts";
import { quoted } from "../../../quote.ts";
import { withDatastore } from "../../datastore/open.ts";
import { type Command, EXIT_OK, wantsJson } from "../../main/command.ts";
import { reportUnreadable } from "../report-unreadable.ts";
import { gatherFacts } from "./facts.ts";
import { explainAddresses } from "./report.ts";
import { describeSubject, resolveSubject, subjectOf } from "./subject.ts";
import { explanationText } from "./text.ts";

export const ipamExplain: Command = {
  kind: "command",
  name: "explain",
  summary:
    "Show why a workload has its addresses: which source chose the pool, which pools were passed over, which block gave it",
  description: [
    "The decision is made again as an ADD would make it now, with the annotations of the pod and its namespace, the network config",
    "of this host, the pools and the labels of the node. It is shown next to the addresses that the workload has; a difference is",
    "reported. Requests of the runtime (podman run --ip) are not recorded, and therefore not known.",
    "A pod that has no address yet is explained too, with the reason if it cannot get one.",
  ].join("\n"),
  operands: "NAMESPACE/POD | CONTAINER",
  options: [
    {
      name: "network-config",
      value: "FILE",
      summary: `Network config of the pod's node (default: the installed one that runs the plugin ${identity.product})`,
    },
  ],
  needsDatastore: true,
  examples: [
    { command: "ipam explain default/web-0", does: "Show why a pod has its addresses" },
    {
      command: "ipam explain 4f1a9c",
      does: "The same for a container that is not in a pod, by the beginning of its ID",
    },
    { command: "ipam explain default/web-0 -o json", does: "As JSON for a script" },
  ],
  async run(context, given) {
    const wanted = subjectOf(given.operands);
    const file = given.values.get("network-config");
    const network = file === undefined ? await findInstalledNetwork(context) : await readNetworkConfig(file, context);
    const ipamType = network?.decoded.config.ipam.type ?? identity.ipamType;
    if (ipamType !== identity.ipamType) {
      const state = `its addresses come from IPAM plugin ${quoted(ipamType)}, which has no pools`;
      throw new PluginError("field-unsupported", `Cannot explain ${describeSubject(wanted)}: ${state}`);
    }
    return withDatastore(context, given, async (store, settings) => {
      const subject = await resolveSubject(store, wanted);
      const { facts, notes, unreadable } = await gatherFacts(subject, { store, settings, network, context });
      const explanation = explainAddresses(facts);
      const place = { workload: describeSubject(subject), node: facts.node, network: network?.decoded.config.name };
      if (wantsJson(given)) {
        context.stdout(`${JSON.stringify({ ...place, ...explanation, notes }, undefined, 2)}\n`);
      } else {
        context.stdout(explanationText(place, explanation));
        for (const note of notes) context.stderr(`${note}.\n`);
      }
      return reportUnreadable(context, unreadable) || EXIT_OK;
    });
  },
};
