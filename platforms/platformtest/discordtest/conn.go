package discordtest

import (
	"bytes"
	"compress/zlib"
	"encoding/json"
	"sync"
	"time"

	"github.com/gorilla/websocket"
)

// conn is one gateway connection. Its fields are guarded by Discord.mu, but for the queue.
type conn struct {
	d       *Discord
	ws      *websocket.Conn
	session *session
	version int
	timer   *time.Timer // ends it when heartbeats stay away
	zlib    *stream
	payload []time.Time // when the newest payloads came

	mu    sync.Mutex
	queue [][]byte
	code  int // close with that once the queue is empty
	wake  chan struct{}
	done  chan struct{}
	once  sync.Once
}

// stream is a zlib context that lasts as long as its connection.
type stream struct {
	buf bytes.Buffer
	w   *zlib.Writer
}

func (s *stream) pack(raw []byte) []byte {
	s.buf.Reset()
	_, _ = s.w.Write(raw)
	_ = s.w.Flush()
	return s.buf.Bytes()
}

// part takes the session off a connection that ends. The caller holds Discord.mu.
func (c *conn) part() {
	if s := c.session; s != nil {
		c.session = nil
		c.d.lose(s)
	}
}

// push queues a payload.
func (c *conn) push(p packet) {
	raw, _ := json.Marshal(p)
	c.pushRaw(raw)
}

func (c *conn) pushRaw(raw []byte) {
	c.mu.Lock()
	c.queue = append(c.queue, raw)
	c.mu.Unlock()
	c.poke()
}

func (c *conn) poke() {
	select {
	case c.wake <- struct{}{}:
	default:
	}
}

// close closes with a code after what is queued.
func (c *conn) close(code int) {
	c.mu.Lock()
	c.code = code
	c.mu.Unlock()
	c.poke()
}

// drop cuts the connection with a reset.
func (c *conn) drop() {
	if tcp, ok := c.ws.NetConn().(interface{ SetLinger(int) error }); ok {
		_ = tcp.SetLinger(0)
	}
	c.end()
}

func (c *conn) end() {
	c.once.Do(func() { close(c.done) })
	_ = c.ws.Close()
}

// write sends the queue.
func (c *conn) write() {
	for {
		select {
		case <-c.done:
			return
		case <-c.wake:
		}
		c.d.mu.Lock()
		silent := c.d.troubles[Silent]
		c.d.mu.Unlock()
		if silent {
			continue // Mend pokes again
		}
		c.mu.Lock()
		queue, code := c.queue, c.code
		c.queue = nil
		c.mu.Unlock()
		for _, raw := range queue {
			kind, body := c.frame(raw)
			_ = c.ws.SetWriteDeadline(time.Now().Add(10 * time.Second))
			if err := c.ws.WriteMessage(kind, body); err != nil {
				c.end()
				return
			}
		}
		if code == closeCut {
			c.drop()
			return
		}
		if code != 0 {
			_ = c.ws.WriteControl(websocket.CloseMessage, websocket.FormatCloseMessage(code, closeReasons[code]), time.Now().Add(time.Second))
			c.linger()
			return
		}
	}
}

// linger waits for the client's side of the close, then ends the connection.
func (c *conn) linger() {
	timer := time.NewTimer(2 * time.Second)
	defer timer.Stop()
	select {
	case <-c.done:
	case <-timer.C:
		c.end()
	}
}

// frame encodes a payload as the connection or the session asked: a shared zlib stream, or large ones one by one.
func (c *conn) frame(raw []byte) (kind int, body []byte) {
	if c.zlib != nil {
		return websocket.BinaryMessage, c.zlib.pack(raw)
	}
	c.d.mu.Lock()
	compress := c.session != nil && c.session.compress
	c.d.mu.Unlock()
	if !compress || len(raw) < 1024 {
		return websocket.TextMessage, raw
	}
	var buf bytes.Buffer
	w := zlib.NewWriter(&buf)
	_, _ = w.Write(raw)
	_ = w.Close()
	return websocket.BinaryMessage, buf.Bytes()
}
