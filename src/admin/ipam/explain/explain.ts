import { findInstalledNetwork, readNetworkConfig } from "../../../config/installed-network.ts";
import { PluginError } from "../../../errors.ts";
import { identity } from "../../../identity.ts";
import { quoted } from "../../../quote.ts";
import { withDatastore } from "../../datastore/open.ts";
import { EXIT_OK, type ExitCode, type Given, wantsJson } from "../../main/command.ts";
import type { DatastoreAccess } from "../../main/context.ts";
import { reportUnreadable } from "../report-unreadable.ts";
import { gatherFacts } from "./facts.ts";
import { explainAddresses } from "./report.ts";
import { describeSubject, resolveSubject, subjectOf } from "./subject.ts";
import { explanationText } from "./text.ts";

export async function run(context: DatastoreAccess, given: Given): Promise<ExitCode> {
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
}
