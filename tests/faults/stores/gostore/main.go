// An append-only log in Go: a line for every put, a checksum before its JSON.
//
//	gostore VARIANT FOLDER
package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"hash/crc32"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

func say(text string) {
	if _, err := os.Stdout.WriteString(text + "\n"); err != nil {
		os.Exit(1)
	}
}

func must(err error) {
	if err != nil {
		os.Stderr.WriteString(err.Error() + "\n")
		os.Exit(1)
	}
}

func check(body []byte) string {
	return strconv.FormatUint(uint64(crc32.ChecksumIEEE(body))|1<<32, 16)
}

func main() {
	variant, folder := os.Args[1], os.Args[2]
	file := filepath.Join(folder, "facts.log")
	log, err := os.OpenFile(file, os.O_WRONLY|os.O_APPEND|os.O_CREATE, 0o644)
	must(err)
	names, err := os.Open(folder)
	must(err)
	must(names.Sync())
	must(names.Close())
	data, err := os.ReadFile(file)
	must(err)
	magic := []byte("facts log 1\n")
	if len(data) < len(magic) && bytes.HasPrefix(magic, data) {
		// All ended while it was made.
		must(log.Truncate(0))
		_, err = log.Write(magic)
		must(err)
		must(log.Sync())
		data = magic
	}
	if !bytes.HasPrefix(data, magic) {
		must(errors.New("facts.log is no log of facts"))
	}
	facts := map[string]string{}
	end := len(magic)
	for {
		size := bytes.IndexByte(data[end:], '\n')
		if size < 0 {
			break
		}
		sum, body, found := bytes.Cut(data[end:end+size], []byte(" "))
		if !found || string(sum) != check(body) || json.Unmarshal(body, &facts) != nil {
			break
		}
		end += size + 1
	}
	if end < len(data) {
		must(log.Truncate(int64(end)))
		must(log.Sync())
	}

	put := func(name, value string) error {
		added := map[string]string{name + ".left": value, name + ".right": value}
		body, err := json.Marshal(added)
		if err != nil {
			return err
		}
		// Write goes on after a short write, or returns an error.
		if _, err := log.WriteString(check(body) + " " + string(body) + "\n"); err != nil {
			return err
		}
		if variant != "no_fsync" {
			if err := log.Sync(); err != nil {
				return err
			}
		}
		for name, value := range added {
			facts[name] = value
		}
		return nil
	}

	say("READY")
	lines := bufio.NewScanner(os.Stdin)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		words := strings.Fields(lines.Text())
		switch {
		case len(words) == 1 && words[0] == "DUMP":
			body, err := json.Marshal(facts)
			must(err)
			say(string(body))
		case len(words) == 3 && words[0] == "PUT":
			if err := put(words[1], words[2]); err != nil {
				say("ERROR " + err.Error())
				os.Exit(1)
			}
			say("OK")
		default:
			say("REFUSED expected PUT name value or DUMP")
		}
	}
	must(lines.Err())
}
