/** `spec.flows`: whether the nodes record who talks to whom, and how much of it they keep. */
import * as v from "valibot";
import { FLOW_FIELDS } from "../node-agent-configuration.ts";
import { switchField } from "./fields.ts";

export const flowsSchema = v.object({
  mode: v.exactOptional(switchField),
  historyMegabytes: FLOW_FIELDS.flowHistoryMegabytes,
  historyAge: FLOW_FIELDS.flowHistoryAge,
  deniedPerSecond: FLOW_FIELDS.flowDeniedPerSecond,
  flowsPerSecond: FLOW_FIELDS.flowsPerSecond,
  logFile: FLOW_FIELDS.flowLogFile,
});

export type DeclaredFlows = Readonly<v.InferOutput<typeof flowsSchema>>;
