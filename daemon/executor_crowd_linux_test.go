package daemon

import (
	"net"
	"testing"
	"time"

	"github.com/holdfast-dev/holdfast/executorpb"
)

// checkIdleConnections: connections that say nothing of what is to be run, however many, keep nobody
// from the code executor.
func checkIdleConnections(t *testing.T, d *Daemon, c executorpb.CodeExecutorClient) {
	const preface = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	for i := range maxExecutorConns + 44 {
		conn, err := net.DialTimeout("tcp", d.executorAt(), 5*time.Second)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if i%2 == 0 {
			if _, err := conn.Write([]byte(preface)); err != nil {
				t.Fatal(err)
			}
		}
	}
	got, err := c.Execute(d.as(t, "alice"), &executorpb.ExecutionRequest{RequestId: "r1", Language: "python3", Code: "print(6 * 7)"})
	if err != nil || got.Stdout != "42\n" {
		t.Fatalf("%v %v", got, err)
	}
}
