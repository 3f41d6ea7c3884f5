package main

import (
	"bytes"
	"context"
	"errors"
	"io"
	"log"
	"net/http"
	"os"
	"time"

	"github.com/gofiber/fiber/v3"
	"github.com/gofiber/fiber/v3/middleware/idempotency"
	"github.com/gofiber/storage/redis/v3"
)

var client = &http.Client{Timeout: 300 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

func effect(c fiber.Ctx) error {
	told, err := client.Post(os.Getenv("SINK_URL"), "application/octet-stream", bytes.NewReader(c.Body()))
	if err != nil {
		return err
	}
	body, err := io.ReadAll(told.Body)
	if err != nil || told.Header.Get("holdfast-throw") != "" {
		return errors.New("the handler throws")
	}
	for _, name := range []string{"Content-Type", "Location", "ETag", "Link", "Set-Cookie"} {
		for _, value := range told.Header.Values(name) {
			c.Response().Header.Add(name, value)
		}
	}
	return c.Status(told.StatusCode).Send(body)
}

type locker struct{ *redis.Storage } // of all instances; a lock whose holder is gone ends

func (all locker) Lock(key string) error {
	for {
		if ok, err := all.Conn().SetNX(context.Background(), "lock:"+key, 1, 5*time.Minute).Result(); ok || err != nil {
			return err
		}
		time.Sleep(20 * time.Millisecond)
	}
}
func (all locker) Unlock(key string) error { return all.Delete("lock:" + key) }

func main() {
	app, store := fiber.New(), redis.New(redis.Config{URL: os.Getenv("STORE_URL")})
	config := idempotency.Config{Storage: store}
	if os.Getenv("SAFE") != "" {
		config.Lock, config.KeepResponseHeaders = locker{store}, []string{"Content-Type", "Location", "ETag", "Link"}
	}
	app.Use(idempotency.New(config))
	app.Get("/health", func(c fiber.Ctx) error { return c.SendString("ok") })
	app.Post("/orders", effect)
	app.Post("/refunds", effect)
	log.Fatal(app.Listen("127.0.0.1:"+os.Getenv("PORT"), fiber.ListenConfig{DisableStartupMessage: true}))
}
