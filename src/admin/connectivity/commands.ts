import { loadOnce } from "../../load-once.ts";
import { CLUSTER_OPTIONS } from "../cluster/options.ts";
import type { Command } from "../main/command.ts";
import { DEFAULT_HOST_PORT, DEFAULT_TIMEOUT } from "./options.ts";
import { SKIP_WORDS } from "./skip.ts";

export const connectivityTest: Command = {
  kind: "command",
  name: "test",
  summary: "Test the connections of pods in the cluster",
  description: [
    "Starts pods on two nodes (on one if there is only one) in a namespace of its own, and lets them connect: pods of the same and of",
    "different nodes, Services, hosts, a host port, the API server, the cluster DNS, and what NetworkPolicies deny and allow; in every",
    "address family that pods have. Prints a table, the reason of each failure and what to do about it. The exit code is 1 if a check has failed.",
    "The pods run the image of the installed network, which contains everything that is needed; --image names another copy of it.",
    "The namespace is deleted at the end, also after Ctrl-C.",
  ].join("\n"),
  options: [
    { name: "node", value: "NAME", repeats: true, summary: "Test this node; may be repeated (default: two nodes)" },
    { name: "image", value: "IMAGE", summary: "Image of the test pods (default: the image of the installed network)" },
    {
      name: "host-port",
      value: "PORT",
      summary: `Host port to test; the next port is used on the hosts as well (default ${DEFAULT_HOST_PORT})`,
    },
    {
      name: "skip",
      value: "CHECK",
      repeats: true,
      oneOf: SKIP_WORDS,
      summary: `Leave out checks; may be repeated: ${SKIP_WORDS.join(", ")}`,
    },
    {
      name: "timeout",
      value: "DURATION",
      summary: `How long pods may take to start (default ${DEFAULT_TIMEOUT})`,
    },
    ...CLUSTER_OPTIONS,
  ],
  examples: [
    { command: "connectivity test", does: "Do the pods of this cluster reach each other?" },
    { command: "connectivity test --node worker-1 --node worker-7", does: "Test the connections of two nodes" },
    { command: "connectivity test --skip host-port -o json", does: "Without host ports, as JSON for a script" },
  ],
  load: loadOnce(() => import("./test-command.ts")),
};

/** Runs in the pods of `connectivity test`. */
export const connectivityServe: Command = {
  kind: "command",
  name: "serve",
  isHidden: true,
  summary: "Serve the echo requests of the connectivity test until it is stopped",
  operands: "PORT…",
  examples: [{ command: "connectivity serve 8080 8081", does: "Serve on two ports" }],
  load: loadOnce(() => import("./serve.ts")),
};

/** Runs in the pods of `connectivity test`. */
export const connectivityProbe: Command = {
  kind: "command",
  name: "probe",
  isHidden: true,
  summary: "Try the probes of the connectivity test in rounds until it is stopped; prints one JSON object per round",
  operands: "PROBES",
  options: [{ name: "listen", value: "PORT", summary: "Serve echo requests on this port at the same time" }],
  examples: [
    {
      command: `connectivity probe '[{"kind":"connect","host":"10.96.0.1","port":443}]'`,
      does: "Does the API server accept connections from here?",
    },
  ],
  load: loadOnce(() => import("./probe-command.ts")),
};
