/** The four plots of docs/scale.md. Pure. */
import { medianOf, type Point } from "./fit.ts";
import type { AgentAtScale, Measured, RealPhase } from "./measured.ts";
import { type Costs, type Prediction, predict } from "./model.ts";
import type { ScaleChart } from "./plot.ts";

export const SIZES = [100, 200, 500, 1_000, 2_000, 5_000, 10_000];

export function scaleCharts({ agents, real }: Measured, costs: Costs): readonly ScaleChart[] {
  const computed = (of: (prediction: Prediction) => number): readonly Point[] =>
    SIZES.map((nodes) => ({ x: nodes, y: of(predict(costs, nodes)) }));
  const measured = (of: (agent: AgentAtScale) => number): readonly Point[] =>
    Object.values(agents).map((agent) => ({ x: agent.size.nodes, y: of(agent) }));
  const atReal = (y: number): Point => ({ x: real.nodes, y });
  const perAgent = ({ agentMilliseconds }: RealPhase) => agentMilliseconds / real.nodes;
  return [
    {
      title: "First convergence: CPU seconds of agent and etcd",
      lines: [
        {
          name: "one agent",
          computed: computed(({ firstSeconds }) => firstSeconds),
          measured: measured(({ first }) => (first.agentMilliseconds + first.etcdMilliseconds) / 1_000),
          real: atReal((perAgent(real.first) + real.first.etcdMilliseconds / real.nodes) / 1_000),
        },
      ],
    },
    {
      title: "Memory of one agent, MB resident",
      lines: [
        {
          name: "settled",
          computed: computed(({ residentBytes }) => residentBytes / 1e6),
          measured: measured(({ memory }) => memory.settled.residentBytes / 1e6),
          real: atReal(real.mainResidentBytes / 1e6),
        },
        {
          name: "after a zone returned",
          computed: computed(({ bytesAfterZone }) => bytesAfterZone / 1e6),
          measured: measured(({ zone }) => zone.returns.residentBytes / 1e6),
        },
      ],
    },
    {
      title: "CPU of one agent: one change, milliseconds",
      lines: [
        {
          name: "a pod that a policy allows",
          computed: computed(({ changeMilliseconds }) => changeMilliseconds),
          measured: measured(({ changes }) => medianOf(changes.allowedPod.map((each) => each.agentMilliseconds))),
          real: atReal(medianOf(real.changes.map(perAgent))),
        },
        {
          name: "a pod that none allows",
          computed: computed(() => costs.unrelatedMilliseconds),
          measured: measured(({ changes }) => changes.unrelatedPods.agentMilliseconds / changes.unrelatedPods.count),
        },
      ],
    },
    {
      title: "A third of the nodes fails and returns: CPU seconds",
      lines: [
        {
          name: "fails",
          computed: computed(({ zoneFailsSeconds }) => zoneFailsSeconds),
          measured: measured(({ zone }) => zone.fails.agentMilliseconds / 1_000),
        },
        {
          name: "returns",
          computed: computed(({ zoneReturnsSeconds }) => zoneReturnsSeconds),
          measured: measured(({ zone }) => zone.returns.agentMilliseconds / 1_000),
        },
      ],
    },
    {
      title: "etcd: cores for watches, 20 pods per second",
      lines: [{ name: "cores", computed: computed(({ serverCores }) => serverCores), measured: [] }],
    },
    {
      title: "etcd: requests per second, 20 pods per second",
      lines: [
        {
          name: "reads",
          computed: computed(({ readsPerSecond }) => readsPerSecond),
          measured: [],
        },
        { name: "writes", computed: computed(({ commitsPerSecond }) => commitsPerSecond), measured: [] },
      ],
    },
  ];
}
