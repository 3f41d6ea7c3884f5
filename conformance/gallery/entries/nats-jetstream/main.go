package main

import (
	"bytes"
	"context"
	"io"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

var client = &http.Client{Timeout: 300 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

func effect(w http.ResponseWriter, body []byte) {
	told, err := client.Post(os.Getenv("SINK_URL"), "application/octet-stream", bytes.NewReader(body))
	if err != nil {
		panic(err)
	}
	defer told.Body.Close()
	answer, err := io.ReadAll(told.Body)
	if err != nil || told.Header.Get("holdfast-throw") != "" {
		panic("the handler throws")
	}
	for _, name := range []string{"Content-Type", "Location", "ETag", "Link", "Set-Cookie"} {
		w.Header()[http.CanonicalHeaderKey(name)] = told.Header.Values(name)
	}
	w.WriteHeader(told.StatusCode)
	w.Write(answer)
}

func main() {
	ctx := context.Background()
	nc, err := nats.Connect(os.Getenv("NATS_URL"))
	if err != nil {
		log.Fatal(err)
	}
	js, _ := jetstream.New(nc)
	if _, err := js.CreateOrUpdateStream(ctx, jetstream.StreamConfig{Name: "ORDERS", Subjects: []string{"orders"}}); err != nil {
		log.Fatal(err)
	}
	http.HandleFunc("GET /health", func(w http.ResponseWriter, r *http.Request) { io.WriteString(w, "ok") })
	http.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		keys := r.Header.Values("Idempotency-Key")
		body, err := io.ReadAll(r.Body)
		if err != nil || len(keys) != 1 || keys[0] == "" {
			http.Error(w, "one Idempotency-Key is required", 400)
		} else if ack, err := js.Publish(ctx, "orders", body, jetstream.WithMsgID(keys[0])); err != nil {
			http.Error(w, err.Error(), 503)
		} else if ack.Duplicate {
			w.WriteHeader(208)
		} else {
			effect(w, body)
		}
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
