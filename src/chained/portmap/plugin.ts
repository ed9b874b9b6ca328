/** The chained plugin `portmap`: what each CNI command does. Each loads its own part alone. */
import type { PluginDescription } from "../../cni/plugin-description.ts";
import type { CniPlugin } from "../../cni/serve.ts";
import { loadOnce } from "../../load-once.ts";
import { type LoggedContext, loggingCalls } from "../../log/call-log.ts";
import type { ProcessSurroundings, Surroundings } from "./surroundings.ts";

const loadAdd = loadOnce(() => import("./add.ts"));
const loadDel = loadOnce(() => import("./del.ts"));

export function portmapPlugin(description: PluginDescription, surroundings: ProcessSurroundings): CniPlugin {
  const logged = loggingCalls(surroundings);
  const { loadNetfilter, runDirectory, openFolder } = surroundings;
  const given = ({ log }: LoggedContext): Surroundings => ({ log, loadNetfilter, runDirectory, openFolder });
  return {
    ...description,
    add: logged(async (call, context) => (await loadAdd()).add(call, given(context))),
    del: logged(async (call, context) => (await loadDel()).del(call, given(context))),
    check: logged(async (call, context) => (await import("./check.ts")).check(call, given(context))),
    gc: logged(async (call, context) => (await import("./gc.ts")).gc(call, given(context))),
    status: logged(async (call, context) => (await import("./status.ts")).status(call, given(context))),
  };
}
