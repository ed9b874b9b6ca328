/** The few shapes of address that config values take: URLs, host:port, domain names. */

export function isHttpUrl(text: string): boolean {
  if (!/^https?:\/\//i.test(text)) return false;
  const url = URL.parse(text);
  return url !== null && url.hostname !== "";
}

/** `http://a:2379, http://b:2379/` -> the two, trimmed and without a closing slash. */
export function splitEndpoints(text: string): readonly string[] {
  return text.split(",").map((endpoint) => endpoint.trim().replace(/\/+$/, ""));
}

export function areEndpoints(text: string): boolean {
  return splitEndpoints(text).every(isHttpUrl);
}

export function isHostAndPort(text: string): boolean {
  if (!/^[^\s/@?#]+:\d{1,5}$/.test(text)) return false;
  return isHttpUrl(`http://${text}`);
}

export function isDomainName(text: string): boolean {
  const label = /^[a-z0-9_]([a-z0-9_-]{0,61}[a-z0-9_])?$/i;
  const name = text.replace(/\.$/, "");
  return name.length <= 253 && name.split(".").every((part) => label.test(part));
}
