package main

import (
	"bytes"
	"context"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"io"
	"net/http"
	"os"
	"time"
)

var client = &http.Client{Timeout: 300 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

func must[T any](it T, err error) T {
	if err != nil {
		panic(err)
	}
	return it
}
func effect(w http.ResponseWriter, body []byte) {
	told := must(client.Post(os.Getenv("SINK_URL"), "application/octet-stream", bytes.NewReader(body)))
	answer := must(io.ReadAll(told.Body))
	if told.Header.Get("holdfast-throw") != "" {
		panic("the handler throws")
	}
	for _, name := range []string{"Content-Type", "Location", "ETag", "Link", "Set-Cookie"} {
		w.Header()[http.CanonicalHeaderKey(name)] = told.Header.Values(name)
	}
	w.WriteHeader(told.StatusCode)
	w.Write(answer)
}

func main() {
	ctx, safe := context.Background(), os.Getenv("SAFE") != ""
	js := must(jetstream.New(must(nats.Connect(os.Getenv("NATS_URL"), nats.ReconnectBufSize(map[bool]int{true: -1}[safe])))))
	stream := must(js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders"}}))
	if safe { // a consumer makes the effect, behind a double ack
		must(must(stream.CreateOrUpdateConsumer(ctx, jetstream.ConsumerConfig{Durable: "effects"})).Consume(func(msg jetstream.Msg) {
			if msg.DoubleAck(ctx) == nil {
				client.Post(os.Getenv("SINK_URL"), "application/octet-stream", bytes.NewReader(msg.Data()))
			}
		}))
	}
	http.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		keys, body := r.Header.Values("Idempotency-Key"), must(io.ReadAll(r.Body))
		if len(keys) != 1 || keys[0] == "" {
			http.Error(w, "one Idempotency-Key is required", 400)
		} else if ack, err := js.Publish(ctx, "orders", body, jetstream.WithMsgID(keys[0])); err != nil {
			http.Error(w, err.Error(), 503)
		} else if safe || ack.Duplicate {
			w.WriteHeader(map[bool]int{true: 208, false: 202}[ack.Duplicate])
		} else {
			effect(w, body)
		}
	})
	panic(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
