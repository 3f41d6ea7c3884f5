// Frames for the Go canonicalisers. Run as `runner LIBRARY`.
//
// The pipelines that are judged: gowebpki/jcs takes the bytes of the document as they are and parses them itself; the
// naive one is encoding/json, where maps come out sorted.
package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"os"

	"github.com/gowebpki/jcs"
)

func naive(document []byte) ([]byte, error) {
	var value any
	if err := json.Unmarshal(document, &value); err != nil {
		return nil, err
	}
	return json.Marshal(value)
}

// must ends the process: what it is given is the runner's own trouble, never a refusal.
func must(err error) {
	if err != nil {
		panic(err)
	}
}

func main() {
	libraries := map[string]func([]byte) ([]byte, error){"gowebpki": jcs.Transform, "naive": naive}
	canonicalise := libraries[os.Args[1]]
	in, out := bufio.NewReaderSize(os.Stdin, 1<<16), bufio.NewWriterSize(os.Stdout, 1<<16)
	header := make([]byte, 5)
	for {
		// Answers must not wait in the buffer while this waits for more documents.
		if in.Buffered() == 0 {
			must(out.Flush())
		}
		if _, err := io.ReadFull(in, header[:4]); errors.Is(err, io.EOF) {
			must(out.Flush())
			return
		} else {
			must(err)
		}
		document := make([]byte, binary.BigEndian.Uint32(header))
		_, err := io.ReadFull(in, document)
		must(err)
		// A returned error is a refusal. A panic in the library is none: it ends the process, and that is seen.
		body, refusal := canonicalise(document)
		header[4] = 'C'
		if refusal != nil {
			body, header[4] = []byte(refusal.Error()), 'R'
		}
		binary.BigEndian.PutUint32(header, uint32(len(body)))
		_, err = out.Write(append(header, body...))
		must(err)
	}
}
