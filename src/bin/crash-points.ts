/**
 * In a test build alone: ends the process at a point of its work, as a power
 * switch would, tells it to stop, or freezes it. The variable says at which: `list`
 * tells every point that is passed, `12` kills at the twelfth, `stop 12` sends
 * SIGTERM there, `freeze 12` SIGSTOP.
 */

import { onCrashPoint } from "../effect.ts";
import { identity } from "../identity.ts";

export function armCrashPoints(): void {
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
