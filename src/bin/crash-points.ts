/**
 * Only in a test build: kills, stops or freezes the process at one of its crash
 * points. The variable selects it: `list` prints every point that is passed, `12`
 * sends SIGKILL at the twelfth, `stop 12` SIGTERM, `freeze 12` SIGSTOP. A second
 * variable makes every datastore commit one object at a time.
 */

import { commitOneObjectAtATime, onCrashPoint } from "../effect.ts";
import { identity } from "../identity.ts";

export function armCrashPoints(): void {
  if (process.env[`${identity.environmentPrefix}FAULT_ATOMICITY`] === "one object") commitOneObjectAtATime();
  const wanted = process.env[`${identity.environmentPrefix}FAULT`];
  if (wanted === undefined) return;
  let passed = 0;
  onCrashPoint((point) => {
    passed += 1;
    if (wanted === "list") console.error(`crash point ${passed} ${point}`);
    else if (wanted === String(passed)) process.kill(process.pid, "SIGKILL");
    else if (wanted === `stop ${passed}`) process.kill(process.pid, "SIGTERM");
    else if (wanted === `freeze ${passed}`) process.kill(process.pid, "SIGSTOP");
  });
}
