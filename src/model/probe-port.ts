/** Where node agents answer the probes of others, at the addresses of their VXLAN tunnels: TCP, and datagrams. */
export const PROBE_PORT = 9089;
