// Command feeder takes the place of Felix for one dikastes: it serves Calico's policy sync API on a unix socket and sends
// the messages of its standard input, one ToDataplane in JSON per line, to every client. Then the stream stays open.
package main

import (
	"bufio"
	"bytes"
	"flag"
	"io"
	"log"
	"net"
	"os"

	"github.com/projectcalico/calico/felix/proto"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/encoding/protojson"
)

type feeder struct {
	proto.UnimplementedPolicySyncServer
	messages []*proto.ToDataplane
}

func (f *feeder) Sync(_ *proto.SyncRequest, stream grpc.ServerStreamingServer[proto.ToDataplane]) error {
	for _, message := range f.messages {
		if err := stream.Send(message); err != nil {
			return err
		}
	}
	<-stream.Context().Done()
	return nil
}

func main() {
	listen := flag.String("listen", "", "path of the socket")
	flag.Parse()

	messages, err := readMessages(os.Stdin)
	if err != nil {
		log.Fatal(err)
	}
	listener, err := net.Listen("unix", *listen)
	if err != nil {
		log.Fatal(err)
	}
	server := grpc.NewServer()
	proto.RegisterPolicySyncServer(server, &feeder{messages: messages})
	log.Fatal(server.Serve(listener))
}

func readMessages(input io.Reader) ([]*proto.ToDataplane, error) {
	var messages []*proto.ToDataplane
	reader := bufio.NewReader(input)
	for {
		line, err := reader.ReadBytes('\n')
		if err == io.EOF {
			return messages, nil
		}
		if err != nil {
			return nil, err
		}
		message := &proto.ToDataplane{}
		if err := protojson.Unmarshal(bytes.TrimSpace(line), message); err != nil {
			return nil, err
		}
		messages = append(messages, message)
	}
}
