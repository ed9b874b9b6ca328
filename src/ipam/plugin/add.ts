/** ADD: assigns the addresses of one attachment, in one read and one commit, or in one commit that verifies remembered reads. */
import { decodeArguments, refuseTwoRequests } from "../../cni/arguments.ts";
import type { AddCall } from "../../cni/call.ts";
import { type CniResult, EMPTY_RESULT } from "../../cni/result.ts";
import { identity } from "../../identity.ts";
import { addressBits } from "../../ip/address.ts";
import { formatInterfaceAddress } from "../../ip/prefix.ts";
import { quoted } from "../../quote.ts";
import { assignRequest, attachmentOf } from "../attachment.ts";
import { readyForAssigning, WANTED_CLUSTER } from "../cluster.ts";
import { type AssignedAddress, type Assignment, assignmentFields, poolWarnings } from "../request.ts";
import { requestedAddresses } from "../requested-addresses.ts";
import { type Session, thisMachine } from "../session.ts";

export async function add(call: AddCall, session: Session): Promise<CniResult> {
  const args = decodeArguments(call.args);
  refuseTwoRequests(call.args);
  const requested = requestedAddresses({ config: call.config, args });
  const assignment = await (await session.allocator()).assign(
    assignRequest(attachmentOf(call, session), {
      ipam: session.config.ipam,
      args,
      requested,
      onLink: [],
      ...thisMachine(session),
    }),
    {
      wanted: [WANTED_CLUSTER],
      check: ([cluster]) => void readyForAssigning(cluster, session),
      changes: ([cluster]) => readyForAssigning(cluster, session),
    },
  );
  for (const message of poolWarnings(assignment)) session.log.warning(message);
  for (const message of unkeptPools(assignment)) session.log.warning(message);
  session.note(assignmentFields(assignment));
  return { ...EMPTY_RESULT, ips: assignment.addresses.map((each) => ({ address: resultAddress(each) })) };
}

/** With the prefix length of its block; a requested address has its full length. */
function resultAddress({ address, block, given }: AssignedAddress): string {
  return formatInterfaceAddress({ address, length: given ? addressBits(address.family) : block.length });
}

/** Who calls this plugin is not known: the pod may have several attachments by it. */
function unkeptPools({ addresses, pools }: Assignment): readonly string[] {
  const keeping = pools.filter(({ name, keepForSeconds }) => {
    return keepForSeconds !== undefined && addresses.some(({ pool }) => pool === name);
  });
  const type = `"ipam.type" ${quoted(identity.ipamType)} of another plugin`;
  return keeping.map(
    ({ name }) => `"keepAddresses" of pool ${quoted(name)} has no effect for ${type}: addresses are not kept`,
  );
}
