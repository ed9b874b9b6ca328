/** Which labels selectors can name. */
import { LONGEST_NAME } from "./longest-name.ts";

const LABEL = /^[A-Za-z0-9_./-]{1,512}$/;

export function isLabelName(text: string): boolean {
  return LABEL.test(text);
}

/** No longer than any name. */
export function isLabelValue(text: string): boolean {
  return text.length <= LONGEST_NAME;
}
