/**
 * Whether the kernel sends wrong checksums through a VXLAN device if it leaves them to the device below. Pure.
 *
 * Before Linux 5.8 the checksum of a datagram whose port or address was translated (a Service, `natOutgoing`) could be wrong
 * after encapsulation, so that the receiver dropped it. Distributions have backported the correction under older numbers;
 * offload is turned off there too: it costs some processor time, a lost packet costs more.
 */
const CORRECT_SINCE = [5, 8] as const;

/** `release`: as `uname -r` prints it, such as `5.4.0-190-generic`. An unreadable one counts as new. */
export function sendsWrongVxlanChecksums(release: string): boolean {
  const [, major, minor] = /^(\d+)\.(\d+)/.exec(release) ?? [];
  if (major === undefined || minor === undefined) return false;
  const [correctMajor, correctMinor] = CORRECT_SINCE;
  return Number(major) < correctMajor || (Number(major) === correctMajor && Number(minor) < correctMinor);
}
