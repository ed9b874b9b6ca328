/** Registers a host as its node agent does, in the surroundings of a test of the admin tool: nothing without a network config. */
import { readAgentNetwork } from "../../src/agent/network/agent-network.ts";
import { hostOf } from "../../src/agent/upkeep/upkeep-part.ts";
import { describeFailure } from "../../src/errors.ts";
import { registerForAgent } from "../../src/upkeep/register.ts";
import { VERSION } from "../../src/version.ts";
import { type AdminRun, type AdminSurroundings, contextIn } from "./admin-context.ts";

export async function registerAsAgent(surroundings: AdminSurroundings): Promise<AdminRun> {
  const [out, err]: [string[], string[]] = [[], []];
  const context = contextIn(surroundings, { stdout: (text) => out.push(text), stderr: (text) => err.push(text) });
  let code = 0;
  try {
    const network = await readAgentNetwork(context.stderr, undefined, context);
    if (network !== undefined) {
      await registerForAgent(
        await context.openDatastore(network.settings),
        hostOf(network, surroundings.version ?? VERSION),
        { ...context, warn: (message) => err.push(message), log: (message) => out.push(`${message}\n`) },
      );
    }
  } catch (failure) {
    code = 1;
    err.push(describeFailure(failure));
  }
  return { code, stdout: out.join(""), stderr: err.join("") };
}
