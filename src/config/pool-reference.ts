/** What an entry of a pool list is: the CIDR of a pool, or a pool's name. */

/** What stops `text` from naming a pool of `family`; `undefined` when nothing does. */
export function cidrProblem(text: string, family: 4 | 6): string | undefined {
  if (!/[/:]/.test(text)) return isPoolName(text) ? undefined : "it is neither a CIDR nor the name of a pool";
  const found = text.includes(":") ? 6 : 4;
  if (found !== family) return `it is of IPv${found}`;
  return isCidr(text, family) ? undefined : `it is not an IPv${family} CIDR`;
}

function isPoolName(text: string): boolean {
  return text.length <= 253 && /^[a-z0-9]([a-z0-9.-]*[a-z0-9])?$/.test(text) && !/^[\d.]+$/.test(text);
}

function isCidr(text: string, family: 4 | 6): boolean {
  const [address = "", length = "", ...rest] = text.split("/");
  if (rest.length > 0 || !/^\d{1,3}$/.test(length) || Number(length) > (family === 4 ? 32 : 128)) return false;
  if (family === 4) return /^\d{1,3}(\.\d{1,3}){3}$/.test(address) && URL.canParse(`http://${address}/`);
  return /^[\da-f:.]+$/i.test(address) && URL.canParse(`http://[${address}]/`);
}
