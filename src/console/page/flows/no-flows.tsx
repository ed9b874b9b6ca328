/** No flow to show: why that may be, and what to do. */
import { identity } from "../../../identity.ts";
import { Empty } from "../parts/notices.tsx";
import { hashOf, route } from "../route.ts";
import { session } from "../session-state.ts";
import { filtersIn } from "./flow-filter.ts";

const SWITCHED_ON = `${identity.adminTool} patch nodeagentconfiguration default --patch '{"spec": {"flows": "Enabled"}}'`;

export function NoFlows() {
  const { parameters } = route.value;
  const { verdict, since, until, range } = parameters;
  const isFiltered =
    filtersIn(parameters).length > 0 || [verdict, since, until, range].some((each) => each !== undefined);
  if (isFiltered)
    return (
      <Empty icon="flows" title={verdict === "denied" ? "Nothing was denied" : "No flow matches"}>
        <p>
          {range === undefined && since === undefined
            ? "What comes is shown as soon as it matches."
            : "Choose a longer time, or other filters."}
        </p>
        <p>
          <a href={hashOf({ view: "flows" })}>Show all flows</a>
        </p>
      </Empty>
    );
  const isHost = session.value?.mode === "host";
  return (
    <Empty icon="flows" title="No flows are recorded yet" command={SWITCHED_ON}>
      <p>Flows are off until they are switched on. {isHost ? "On this host:" : "For all nodes:"}</p>
    </Empty>
  );
}
