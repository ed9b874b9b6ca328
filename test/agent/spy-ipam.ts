/** An IPAM plugin in shell that records how it is called, and waits or kills on demand. */
import { chmodSync, existsSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import type { CallOptions, PluginSite } from "../support/plugin-site.ts";
import { pollUntil } from "../support/poll.ts";

const FOLDER = "/opt/spies";

export interface SpyIpam {
  readonly options: CallOptions;
  /** The commands, in order. */
  calls(): readonly string[];
  /** The environment of the last call. */
  environment(): Readonly<Record<string, string>>;
  /** Waits until an ADD has started. */
  asked(): Promise<void>;
  /** Lets a waiting ADD continue. */
  letGo(): void;
}

/** What an ADD does before it returns. */
const BEFORE_ANSWER = {
  nothing: "",
  waits: `while [ ! -e ${FOLDER}/go ]; do sleep 0.02; done`,
};

/** `before`: one of the above, or a line of shell. */
export function makeSpyIpam(site: PluginSite, before: keyof typeof BEFORE_ANSWER | { readonly runs: string }): SpyIpam {
  const { host } = site;
  const line = typeof before === "string" ? BEFORE_ANSWER[before] : before.runs;
  host.writeFile(
    `${FOLDER}/spy`,
    `#!/bin/sh
env > ${FOLDER}/environment
echo "$CNI_COMMAND" >> ${FOLDER}/calls
[ "$CNI_COMMAND" = ADD ] || exit 0
${line}
echo '{"cniVersion":"1.1.0","ips":[{"address":"10.77.0.5/24"}]}'
`,
  );
  chmodSync(host.view(`${FOLDER}/spy`), 0o755);
  writeFileSync(host.view(`${FOLDER}/calls`), "");
  rmSync(host.view(`${FOLDER}/go`), { force: true });
  const read = (name: string) => readFileSync(host.view(`${FOLDER}/${name}`), "utf8").trim();
  const calls = () => read("calls").split("\n");
  return {
    options: { config: site.config({ ipam: { type: "spy" } }), environment: { CNI_PATH: FOLDER } },
    calls,
    environment: () =>
      Object.fromEntries(
        read("environment")
          .split("\n")
          .map((each) => [each.slice(0, each.indexOf("=")), each.slice(each.indexOf("=") + 1)]),
      ),
    asked: () => pollUntil(() => existsSync(host.view(`${FOLDER}/calls`)) && calls().includes("ADD"), "the IPAM's ADD"),
    letGo: () => host.writeFile(`${FOLDER}/go`, ""),
  };
}
