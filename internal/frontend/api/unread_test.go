package api

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

// TestRefusedWhileItIsSent: who is refused by the first bytes of a body, and
// sends the rest before it looks, still hears why, also over a connection that
// ends with the answer.
func TestRefusedWhileItIsSent(t *testing.T) {
	t.Parallel()
	door := httptest.NewServer(server(&refusing{}).Handler())
	defer door.Close()
	conn, err := net.Dial("tcp", door.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	_ = conn.SetDeadline(time.Now().Add(time.Minute))
	half := strings.Repeat("[", 100_000)
	fmt.Fprintf(conn, "POST /v1/cross HTTP/1.1\r\nHost: holdfast\r\nConnection: close\r\nContent-Length: %d\r\n\r\n{\"files\":%s", 9+2*len(half), half)
	time.Sleep(100 * time.Millisecond) // by then it was refused
	for range 2 {
		if _, err := fmt.Fprint(conn, half[:len(half)/2]); err != nil {
			t.Fatal("the rest was not taken: ", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	r, err := http.ReadResponse(bufio.NewReader(conn), nil)
	if err != nil || r.StatusCode != http.StatusBadRequest {
		t.Fatalf("%v %v", r, err)
	}
}
