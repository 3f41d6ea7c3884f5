package main

import (
	"bytes"
	"errors"
	"io"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/ThreeDotsLabs/watermill"
	"github.com/ThreeDotsLabs/watermill/message"
	"github.com/ThreeDotsLabs/watermill/message/router/middleware"
)

var client = &http.Client{Timeout: 300 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

func effect(w http.ResponseWriter, body []byte) error {
	told, err := client.Post(os.Getenv("SINK_URL"), "text/plain", bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := io.ReadAll(told.Body)
	if err != nil || told.Header.Get("holdfast-throw") != "" {
		return errors.New("the handler throws")
	}
	for _, name := range []string{"Content-Type", "Location", "ETag", "Link", "Set-Cookie"} {
		w.Header()[http.CanonicalHeaderKey(name)] = told.Header.Values(name)
	}
	w.WriteHeader(told.StatusCode)
	_, err = w.Write(answer)
	return err
}

func main() {
	seen, _ := middleware.NewMapExpiringKeyRepository(24 * time.Hour)
	deduplicator := &middleware.Deduplicator{KeyFactory: middleware.NewMessageHasherFromMetadataField("Idempotency-Key"), Repository: seen, Timeout: time.Minute}
	http.HandleFunc("GET /health", func(http.ResponseWriter, *http.Request) {})
	http.HandleFunc("POST /orders", func(w http.ResponseWriter, r *http.Request) {
		keys, executed := r.Header.Values("Idempotency-Key"), false
		body, err := io.ReadAll(r.Body)
		if err != nil || len(keys) != 1 || keys[0] == "" {
			http.Error(w, "one Idempotency-Key is required", 400)
			return
		}
		msg := message.NewMessage(watermill.NewUUID(), body)
		msg.Metadata.Set("Idempotency-Key", keys[0])
		_, err = deduplicator.Middleware(func(msg *message.Message) ([]*message.Message, error) {
			executed = true
			return nil, effect(w, msg.Payload)
		})(msg)
		if err != nil {
			http.Error(w, err.Error(), 500)
		} else if !executed {
			w.WriteHeader(208)
		}
	})
	log.Fatal(http.ListenAndServe("127.0.0.1:"+os.Getenv("PORT"), nil))
}
