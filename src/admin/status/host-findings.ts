/** What is wrong with one host, and what to do about it. Pure. */
import { counted, listed } from "../../counted.ts";
import { describeFailure } from "../../errors.ts";
import { identity } from "../../identity.ts";
import { createPoolCommand, enablePoolCommand } from "../../ipam/pools.ts";
import { quoted } from "../../quote.ts";
import { remedyFor } from "../resources/unreadable-remedy.ts";
import { poolFinding, versionFindings } from "./cluster-findings.ts";
import type { StatusFinding } from "./finding.ts";
import type { HostStatusFacts } from "./host-states.ts";

const { adminTool } = identity;

export function hostFindings(facts: HostStatusFacts): readonly StatusFinding[] {
  return [
    ...networkFindings(facts),
    ...checkFindings(facts),
    ...facts.agentProblems.map(
      (message): StatusFinding => ({
        ...{ state: "warning", subject: identity.nodeAgent, message },
        remedy: `${adminTool} node status`,
      }),
    ),
    ...goneFindings(facts),
    ...recordFindings(facts),
    ...hostEndpointFindings(facts),
    ...versionFindings(facts),
  ];
}

function networkFindings({ network }: HostStatusFacts): readonly StatusFinding[] {
  if (!("problem" in network)) {
    return network.skipped.map((problem) => {
      const message = `container runtimes skip a file: ${problem}`;
      return { state: "warning", subject: "network", message, remedy: `${adminTool} config check` };
    });
  }
  const { problem: message, remedy } = network;
  return [{ state: "failed", subject: "network", message, ...(remedy === undefined ? {} : { remedy }) }];
}

function checkFindings({ nodeCheck }: HostStatusFacts): readonly StatusFinding[] {
  if ("problem" in nodeCheck) return [{ state: "warning", subject: "this host", message: nodeCheck.problem }];
  return nodeCheck.flatMap(({ check, state, message, remedy }) =>
    state === "ok" ? [] : [{ state, subject: check, message, ...(remedy === undefined ? {} : { remedy }) }],
  );
}

/** On this host the missing interface is evidence; the records follow when no ADD can be in progress. */
function goneFindings({ containers, agent }: HostStatusFacts): readonly StatusFinding[] {
  const gone = containers.filter(({ isGone }) => isGone);
  if (gone.length === 0) return [];
  const [names, addresses] = [gone.map(({ name }) => name), gone.flatMap((each) => each.addresses)];
  const state = `${listed(names)} ${gone.length === 1 ? "is" : "are"} gone: no interface on this host`;
  const held = addresses.length === 1 ? "its address" : "their addresses";
  const subject = "containers";
  if (agent === "running") {
    const verb = addresses.length === 1 ? "is" : "are";
    const message = `${state}; ${held} ${listed(addresses)} ${verb} released within 10 minutes`;
    return [{ state: "warning", subject, message }];
  }
  const message = `${state}; nothing releases ${held} ${listed(addresses)}, since the node agent does not run`;
  return [{ state: "warning", subject, message, remedy: `${adminTool} ipam gc` }];
}

function recordFindings(facts: HostStatusFacts): readonly StatusFinding[] {
  const { datastore, unreadable, network } = facts;
  if (datastore.problem !== undefined) {
    // The network config names the datastore, so that both may fail for the same reason.
    const isReported = "problem" in network && network.problem === datastore.problem;
    return isReported ? [] : [{ state: "failed", subject: "datastore", message: datastore.problem }];
  }
  return [
    ...poolFindings(facts),
    ...profileFindings(facts),
    ...unreadable.map(
      ({ key, failure }): StatusFinding => ({
        ...{ state: "failed", subject: "datastore", message: describeFailure(failure), remedy: remedyFor(key) },
      }),
    ),
    ...ipamFindings(facts),
  ];
}

function hostEndpointFindings({ hostEndpoints }: HostStatusFacts): readonly StatusFinding[] {
  return hostEndpoints.flatMap(({ name, problem }) =>
    problem === undefined
      ? []
      : [
          {
            ...{ state: "warning", subject: `host endpoint ${name}`, message: problem },
            remedy: `${adminTool} edit hostendpoint ${name}`,
          },
        ],
  );
}

function poolFindings({ datastore, network, poolRefusals }: HostStatusFacts): readonly StatusFinding[] {
  const usable = datastore.pools.filter(({ disabled }) => !disabled);
  const isNeeded = "config" in network && network.config.ipam.type === identity.ipamType;
  if (usable.length > 0 || !isNeeded) {
    const refused = poolRefusals.map((message): StatusFinding => ({ state: "failed", subject: "IP pools", message }));
    return [...refused, ...usable.flatMap(poolFinding)];
  }
  const message = "there is no enabled IP pool: containers get no address";
  const [disabled] = datastore.pools;
  const remedy = disabled === undefined ? createPoolCommand(4) : enablePoolCommand(disabled.name);
  return [{ state: "failed", subject: "IP pools", message, remedy }];
}

/** Without any policy nothing is enforced yet. */
function profileFindings({ missingProfiles, policies }: HostStatusFacts): readonly StatusFinding[] {
  return missingProfiles.map(({ name, endpoints }) => ({
    state: policies.length === 0 ? "warning" : "failed",
    subject: "profiles",
    message: `profile ${quoted(name)} does not exist, so ${listed(endpoints)} ${endpoints.length === 1 ? "has" : "have"} only what policies allow`,
    remedy: "restart a container of this network, which writes its profile again, or create the profile",
  }));
}

/** `ipam check` lists them; unfinished ones put no address at risk. */
function ipamFindings({ ipam, unreadable }: HostStatusFacts): readonly StatusFinding[] {
  const reported = new Set(unreadable.map(({ failure }) => failure.message));
  const own = ipam.filter(({ message }) => ![...reported].some((text) => message.includes(text)));
  const [first] = own.toSorted((left, right) => left.severity.localeCompare(right.severity));
  if (first === undefined) return [];
  const state = first.severity === "corrupt" ? "failed" : "warning";
  const message = `${counted(own.length, "problem")} of address records, for example: ${first.message}`;
  return [{ state, subject: "addresses", message, remedy: `${adminTool} ipam check` }];
}
