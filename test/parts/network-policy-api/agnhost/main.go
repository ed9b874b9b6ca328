// Takes the place of agnhost in the pods of the conformance tests where the kernel has no sockets of SCTP: the first two
// packets of an association, INIT and INIT ACK, are sent and received with raw sockets. They are what a policy judges.
// Everything else is done by the real agnhost, /agnhost-upstream.
//
//	porter                                   answers at the ports of SERVE_SCTP_PORT_…
//	connect --timeout=T --protocol=sctp A:P  prints TIMEOUT on stderr and exits with 1 unless A answers
package main

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

const (
	upstream      = "/agnhost-upstream"
	portVariable  = "SERVE_SCTP_PORT_"
	chunkInit     = 1
	chunkInitAck  = 2
	commonHeader  = 12
	initChunk     = 20
	initiateField = 16
)

func main() {
	if hasSctp() || !isForSctp(os.Args[1:]) {
		err := syscall.Exec(upstream, append([]string{upstream}, os.Args[1:]...), os.Environ())
		fail("OTHER", err)
	}
	if os.Args[1] == "porter" {
		serve(servedPorts())
	}
	connect(os.Args[2:])
}

func hasSctp() bool {
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, syscall.IPPROTO_SCTP)
	if err == nil {
		syscall.Close(socket)
	}
	return err == nil
}

func isForSctp(arguments []string) bool {
	if len(arguments) == 0 {
		return false
	}
	if arguments[0] == "porter" {
		return len(servedPorts()) > 0
	}
	return arguments[0] == "connect" && strings.Contains(strings.Join(arguments, " "), "--protocol=sctp")
}

func servedPorts() map[uint16]bool {
	ports := map[uint16]bool{}
	for _, variable := range os.Environ() {
		name, _, _ := strings.Cut(variable, "=")
		if port, err := strconv.ParseUint(strings.TrimPrefix(name, portVariable), 10, 16); err == nil {
			ports[uint16(port)] = true
		}
	}
	return ports
}

// One reader for each family: raw sockets of IPv6 hear nothing of IPv4, and a host may have no IPv6.
func serve(ports map[uint16]bool) {
	if socket, err := net.ListenPacket("ip6:132", ""); err == nil {
		go answer(socket, ports)
	}
	socket, err := net.ListenPacket("ip4:132", "")
	if err != nil {
		fail("OTHER", err)
	}
	answer(socket, ports)
}

func answer(socket net.PacketConn, ports map[uint16]bool) {
	buffer := make([]byte, 1500)
	for {
		size, peer, err := socket.ReadFrom(buffer)
		if err != nil {
			fail("OTHER", err)
		}
		packet := buffer[:size]
		if size < commonHeader+initChunk || packet[commonHeader] != chunkInit {
			continue
		}
		source, destination := binary.BigEndian.Uint16(packet), binary.BigEndian.Uint16(packet[2:])
		if ports[destination] {
			tag := binary.BigEndian.Uint32(packet[initiateField:])
			socket.WriteTo(packetOf(destination, source, tag, chunkInitAck), peer)
		}
	}
}

func connect(arguments []string) {
	timeout, target := time.Second, ""
	for _, argument := range arguments {
		if text, found := strings.CutPrefix(argument, "--timeout="); found {
			timeout, _ = time.ParseDuration(text)
		} else if !strings.HasPrefix(argument, "--") {
			target = argument
		}
	}
	host, portText, err := net.SplitHostPort(target)
	if err != nil {
		fail("OTHER", err)
	}
	port, err := strconv.ParseUint(portText, 10, 16)
	if err != nil {
		fail("OTHER", err)
	}
	network := "ip4:132"
	if strings.Contains(host, ":") {
		network = "ip6:132"
	}
	peer, err := net.ResolveIPAddr(network, host)
	if err != nil {
		fail("OTHER", err)
	}
	// Read would return the header of IPv4, too.
	socket, err := net.DialIP(network, nil, peer)
	if err != nil {
		fail("OTHER", err)
	}
	source := uint16(32768 + time.Now().UnixNano()/1000%28000)
	socket.SetDeadline(time.Now().Add(timeout))
	buffer := make([]byte, 1500)
	if _, err := socket.Write(packetOf(source, uint16(port), 0, chunkInit)); err != nil {
		fail("OTHER", err)
	}
	for {
		size, _, err := socket.ReadFrom(buffer)
		var waited net.Error
		if errors.As(err, &waited) && waited.Timeout() {
			fail("TIMEOUT", nil)
		}
		if err != nil {
			fail("REFUSED", nil)
		}
		packet := buffer[:size]
		isAnswer := size >= commonHeader+initChunk && packet[commonHeader] == chunkInitAck
		if isAnswer && binary.BigEndian.Uint16(packet[2:]) == source {
			os.Exit(0)
		}
	}
}

// Conntrack checks the checksum and the tags: RFC 9260, sections 3.3.2 and 3.3.3 and appendix A.
func packetOf(source, destination uint16, tag uint32, kind byte) []byte {
	packet := make([]byte, commonHeader+initChunk)
	binary.BigEndian.PutUint16(packet, source)
	binary.BigEndian.PutUint16(packet[2:], destination)
	binary.BigEndian.PutUint32(packet[4:], tag)
	packet[commonHeader] = kind
	if kind == chunkInitAck {
		// The cookie, a parameter that every INIT ACK has.
		packet = append(packet, 0, 7, 0, 8, 1, 2, 3, 4)
	}
	binary.BigEndian.PutUint16(packet[14:], uint16(len(packet)-commonHeader))
	binary.BigEndian.PutUint32(packet[16:], 0x12345678)
	binary.BigEndian.PutUint32(packet[20:], 65536)
	binary.BigEndian.PutUint16(packet[24:], 1)
	binary.BigEndian.PutUint16(packet[26:], 1)
	binary.BigEndian.PutUint32(packet[28:], 1)
	binary.LittleEndian.PutUint32(packet[8:], crc32.Checksum(packet, crc32.MakeTable(crc32.Castagnoli)))
	return packet
}

func fail(word string, err error) {
	fmt.Fprint(os.Stderr, word)
	if err != nil {
		fmt.Fprintf(os.Stderr, ": %v", err)
	}
	fmt.Fprintln(os.Stderr)
	os.Exit(1)
}
