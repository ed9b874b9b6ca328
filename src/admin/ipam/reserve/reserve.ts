/** `ipam reserve`: keeps an address for a pod ahead of its next ADD. */
import type { Datastore } from "../../../datastore/datastore.ts";
import { PluginError } from "../../../errors.ts";
import { identity } from "../../../identity.ts";
import { type Address, formatAddress } from "../../../ip/address.ts";
import { type Reservation, type ReserveOutcome, reserveAddress } from "../../../ipam/reserve-address.ts";
import { describeFormerOwner } from "../../../ipam/rest.ts";
import { POD_INTERFACE } from "../../../model/block-owners.ts";
import { isDuration, millisecondsOf } from "../../../model/duration.ts";
import { type BlockAttribute, NETWORK_ATTRIBUTE } from "../../../model/ipam-block.ts";
import { keptOf } from "../../../model/kept-address.ts";
import { quoted } from "../../../quote.ts";
import { withDatastore } from "../../datastore/open.ts";
import { EXIT_OK, type ExitCode, type Given, UsageError, wantsJson } from "../../main/command.ts";
import type { Clock, DatastoreAccess } from "../../main/context.ts";
import { allocatorMeans } from "../allocator.ts";
import { allocationsOf, describeAllocation, findBlocks } from "../blocks.ts";
import { USUAL_KEEP_FOR } from "../options.ts";
import { requirePod } from "../pod-operand.ts";
import { requireAddress } from "../show/show-address.ts";

export async function run(context: DatastoreAccess & Clock, given: Given): Promise<ExitCode> {
  const [podText, addressText, ...more] = given.operands;
  if (podText === undefined || addressText === undefined || more.length > 0)
    throw new UsageError('"ipam reserve" takes exactly NAMESPACE/POD and ADDRESS');
  const pod = requirePod(podText);
  const address = requireAddress(addressText);
  const keepForSeconds = keepForOf(given);
  return withDatastore(context, given, async (store): Promise<ExitCode> => {
    const network = given.values.get("network") ?? (await onlyNetwork(store));
    const reservation: Reservation = {
      ...{ network, interface: POD_INTERFACE, namespace: pod.namespace, pod: pod.name },
      ...{ address, keepForSeconds },
    };
    const outcome = await reserveAddress(store, allocatorMeans(context), reservation);
    const { handle, pool, kind } = requireReserved(outcome, reservation);
    const text = formatAddress(address);
    const state = kind === "reserved" ? "waiting" : "in use";
    if (wantsJson(given)) context.stdout(`${JSON.stringify({ address: text, pool, network, handle, state })}\n`);
    else if (kind === "reserved") context.stdout(`${text} of pool ${pool} waits for pod ${podText}\n`);
    else context.stdout(`${text} of pool ${pool} is kept for pod ${podText} already, which uses it\n`);
    return EXIT_OK;
  });
}

function keepForOf({ values }: Given): number {
  const text = values.get("keep-for") ?? USUAL_KEEP_FOR;
  if (isDuration(text)) return Math.ceil(millisecondsOf(text) / 1000);
  throw new UsageError(`"--keep-for" is ${quoted(text)}: not a duration; use for example "72h" or "30m"`);
}

/** The network of all pods that have addresses. */
async function onlyNetwork(store: Datastore): Promise<string> {
  const { readable } = await findBlocks(store);
  const ofPods = readable.flatMap(allocationsOf).filter(({ secondary }) => secondary["pod"] !== undefined);
  const [first, ...others] = new Set(ofPods.flatMap(({ secondary }) => secondary[NETWORK_ATTRIBUTE] ?? []));
  if (first !== undefined && others.length === 0) return first;
  const found =
    first === undefined ? "no pod has an address" : `pods are in ${[first, ...others].toSorted().join(", ")}`;
  throw new UsageError(`${found}: name the network of the pod, which is "name" in its network config, with --network`);
}

type Reserved = Extract<ReserveOutcome, { kind: "reserved" | "in use by the pod" }>;

function requireReserved(outcome: ReserveOutcome, { address, namespace, pod }: Reservation): Reserved {
  const text = formatAddress(address);
  const refuse = (state: string, details: string, kind: "address-taken" | "try-again-later" = "address-taken") =>
    new PluginError(kind, `Cannot reserve ${text} for pod "${namespace}/${pod}": ${state}`, { details });
  switch (outcome.kind) {
    case "reserved":
    case "in use by the pod":
      return outcome;
    case "keeps another": {
      const other = formatAddress(outcome.address);
      const details = `give that up first: ${identity.adminTool} ipam release --ip ${other}`;
      throw refuse(`${other} is kept for it already`, details);
    }
    case "rests": {
      const owner = describeFormerOwner(outcome.release);
      const left = Math.ceil(outcome.milliseconds / 1000);
      const state = `it was released${owner === undefined ? "" : ` by ${owner}`} and rests for another ${left} s`;
      throw refuse(state, "try again then, or choose another address", "try-again-later");
    }
    case "overlaps":
      throw refuse(
        `it is in no block, and a new one would overlap block ${outcome.block}`,
        "the blockSize of the pool was changed: set it back, or choose an address of an existing block",
      );
    case "taken":
      throw refuse(...taken(outcome.by, { address, namespace, pod }));
  }
}

function taken(
  by: BlockAttribute | undefined,
  { address, namespace, pod }: { readonly address: Address; readonly namespace: string; readonly pod: string },
): readonly [state: string, details: string] {
  const secondary = by?.secondary ?? {};
  const owner = { address, handle: by?.handleId, secondary };
  const isOwn = secondary["pod"] === pod && secondary["namespace"] === namespace;
  if (!isOwn || keptOf(by) !== undefined)
    return [`it is taken: ${describeAllocation(owner)}`, "choose another address, or end its owner first"];
  return [
    `the pod's container has it now, but not as a kept one`,
    `with the annotations ${identity.annotationPrefix}keepAddresses: "true" and ${identity.annotationPrefix}ipAddrs: '["${formatAddress(address)}"]' in its template the pod gets it, kept, when it is created again; or scale its owner down, reserve the address, and scale it up`,
  ];
}
