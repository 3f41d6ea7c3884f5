package main

import (
	"bytes"
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
	defer told.Body.Close()
	if told.Header.Get("holdfast-throw") != "" {
		return errors.New("the handler throws")
	}
	body, err := io.ReadAll(told.Body)
	if err != nil {
		return err
	}
	for _, name := range []string{"Content-Type", "Location", "ETag", "Link", "Set-Cookie"} {
		for _, value := range told.Header.Values(name) {
			if name == "Set-Cookie" {
				c.Response().Header.Add(name, value)
			} else {
				c.Set(name, value)
			}
		}
	}
	return c.Status(told.StatusCode).Send(body)
}

func main() {
	app := fiber.New()
	app.Use(idempotency.New(idempotency.Config{
		Storage: redis.New(redis.Config{URL: os.Getenv("STORE_URL")}),
	}))
	app.Get("/health", func(c fiber.Ctx) error { return c.SendString("ok") })
	app.Post("/orders", effect)
	app.Post("/refunds", effect)
	log.Fatal(app.Listen("127.0.0.1:"+os.Getenv("PORT"), fiber.ListenConfig{DisableStartupMessage: true}))
}
