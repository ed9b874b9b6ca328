/** What is wrong with an installed network, and what to do about it. Pure. */
import { identity } from "../../identity.ts";
import { quoted } from "../../quote.ts";
import { nodesBehind } from "../../upkeep/node-versions.ts";
import type { AgentPod, Condition, PoolState, StatusFacts, StatusPart, Workload } from "./facts.ts";
import type { StatusFinding } from "./finding.ts";
import { routingFindings } from "./node-routing.ts";

const { adminTool, nodeAgent } = identity;

/** A pool that is fuller than this is reported, in percent. */
const FULL_PERCENT = 90n;

export function clusterFindings(facts: StatusFacts): readonly StatusFinding[] {
  const { installation, agents, operator, controllers, datastore } = facts;
  const hasRecords = datastore.agents.some(({ version }) => version !== undefined);
  const isSeen = sees(facts, "installation", "agents");
  if (isSeen && installation === undefined && agents === undefined && !hasRecords) return [NOT_INSTALLED];
  const ofComponents = [...facts.components].flatMap(([name, conditions]) =>
    conditionFindings(`component ${name}`, conditions),
  );
  return [
    ...operatorFindings(facts),
    // It repeats what its components say.
    ...(installation === undefined || ofComponents.length > 0
      ? []
      : conditionFindings("Installation default", installation.conditions)),
    ...ofComponents,
    ...workloadFindings(controllers),
    ...workloadFindings(facts.console),
    ...(operator === undefined ? [] : workloadFindings(operator)),
    ...nodeFindings(facts),
    ...datastoreFindings(facts),
    ...versionFindings(facts),
  ];
}

function sees({ unseen }: StatusFacts, ...parts: readonly StatusPart[]): boolean {
  return parts.every((part) => unseen?.has(part) !== true);
}

const NOT_INSTALLED: StatusFinding = {
  state: "failed",
  subject: "cluster",
  message: `${identity.title} is not installed: there is no Installation and no node agent`,
  remedy: `${adminTool} install`,
};

function operatorFindings(facts: StatusFacts): readonly StatusFinding[] {
  const { installation, operator } = facts;
  if (!sees(facts, "installation", "operator")) return [];
  if (installation !== undefined && operator === undefined) {
    const message = "there is an Installation, but no operator that follows it";
    return [{ state: "failed", subject: "operator", message, remedy: `${adminTool} install` }];
  }
  if (installation === undefined && operator !== undefined) {
    const message = "there is an operator, but no Installation: nothing is installed";
    return [{ state: "failed", subject: "operator", message, remedy: `${adminTool} install` }];
  }
  return [];
}

/** Progressing alone is not a failure: it says what is being done. */
function conditionFindings(subject: string, conditions: readonly Condition[]): readonly StatusFinding[] {
  const isTrue = (type: string) => conditions.find((each) => each.type === type && each.status === "True");
  const degraded = isTrue("Degraded");
  if (degraded !== undefined) return [{ state: "failed", subject, message: sayCondition(degraded) }];
  if (isTrue("Available") !== undefined || isTrue("Ready") !== undefined) return [];
  const progressing = isTrue("Progressing");
  const message = progressing === undefined ? "it is not available" : `in progress: ${sayCondition(progressing)}`;
  return [{ state: "failed", subject, message }];
}

function sayCondition({ reason, message }: Condition): string {
  return message === "" ? reason : message;
}

function workloadFindings(workload: Workload | undefined): readonly StatusFinding[] {
  if (workload === undefined || workload.ready >= workload.desired) return [];
  const { name, namespace, selector, ready, desired } = workload;
  return [
    {
      state: ready === 0 ? "failed" : "warning",
      subject: name,
      message: `${ready} of ${desired} pods are ready`,
      remedy: `kubectl --namespace ${namespace} describe pods --selector ${selector}`,
    },
  ];
}

function nodeFindings(facts: StatusFacts): readonly StatusFinding[] {
  const { nodes, agents, agentPods, datastore } = facts;
  const records = new Map(datastore.nodes?.map((record) => [record.metadata.name, record]));
  return nodes.flatMap((node): readonly StatusFinding[] => {
    const subject = `node ${node.name}`;
    const notReady: readonly StatusFinding[] = node.isReady
      ? []
      : [
          {
            state: "failed",
            subject,
            message: `not Ready: ${node.problem ?? "for an unknown reason"}`,
            remedy: `kubectl describe node ${node.name}`,
          },
        ];
    const ofRouting = routingFindings(node, records.get(node.name), facts);
    if (agents === undefined || !sees(facts, "agent pods")) return [...notReady, ...ofRouting];
    const pods = agentPods.filter((pod) => pod.node === node.name);
    if (pods.some(({ isReady }) => isReady)) return [...notReady, ...ofRouting];
    const [pod] = pods;
    const ofAgent = pod === undefined ? withoutAgent(node.name, agents) : agentFinding(subject, pod);
    return [...notReady, ofAgent, ...ofRouting];
  });
}

function withoutAgent(node: string, { name, namespace }: Workload): StatusFinding {
  return {
    state: "failed",
    subject: `node ${node}`,
    message: `it has no pod of ${name}: its pods get no network`,
    remedy: `kubectl --namespace ${namespace} describe daemonset ${name}`,
  };
}

function agentFinding(subject: string, { name, namespace, reason }: AgentPod): StatusFinding {
  const remedy = `kubectl --namespace ${namespace} logs ${name} --all-containers`;
  return { state: "failed", subject, message: `${nodeAgent} is not ready: ${reason}`, remedy };
}

function datastoreFindings(facts: StatusFacts): readonly StatusFinding[] {
  const { problem, pools } = facts.datastore;
  if (problem !== undefined) return [{ state: "warning", subject: "datastore", message: problem }];
  if (!sees(facts, "pools")) return [];
  const usable = pools.filter(({ disabled }) => !disabled);
  if (usable.length === 0) {
    const message = "there is no enabled IP pool: pods get no address, unless host-local assigns them";
    return [{ state: "warning", subject: "IP pools", message, remedy: `${adminTool} get ippools` }];
  }
  return usable.flatMap(poolFinding);
}

export function poolFinding({ name, cidr, size, used, free }: PoolState): readonly StatusFinding[] {
  const percent = size === 0n ? 0n : (100n * used) / size;
  if (percent < FULL_PERCENT) return [];
  const message = free === 0n ? `all addresses of ${cidr} are in use` : `${percent} % of ${cidr} are in use`;
  const remedy = `add another pool: ${adminTool} apply -f POOL.yaml; look for leaks: ${adminTool} ipam check`;
  return [{ state: free === 0n ? "failed" : "warning", subject: `IP pool ${quoted(name)}`, message, remedy }];
}

export function versionFindings({
  datastore,
  toolVersion,
}: Pick<StatusFacts, "datastore" | "toolVersion">): readonly StatusFinding[] {
  const behind = nodesBehind(datastore.agents);
  const older = behind.map(
    ({ node, version = "no agent has recorded its version" }): StatusFinding => ({
      state: "warning",
      subject: `node ${node}`,
      message: `it runs an earlier release than others (${version})`,
    }),
  );
  const { clusterVersion } = datastore;
  if (clusterVersion === undefined || clusterVersion === toolVersion) return older;
  const message = `this tool is ${toolVersion}, the cluster is ${clusterVersion}`;
  return [...older, { state: "warning", subject: adminTool, message, remedy: "use the tool of the cluster's release" }];
}
