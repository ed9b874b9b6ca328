/** What an account of a node may ask for. An agent on a host asks for it for itself: it can renew its token only while the host runs. */
export const LONGEST_TOKEN_SECONDS = 7 * 24 * 60 * 60;
