//! Frames for the Rust canonicalisers. Run as `runner LIBRARY`.
//!
//! The pipeline that is judged is the one an author would write: the bytes of the document become a
//! `serde_json::Value` (where the last of two equal names wins), and the value goes to the library.

use std::io::{self, BufRead, BufReader, BufWriter, Read, Write};

type Canonicalise = fn(&serde_json::Value) -> serde_json::Result<Vec<u8>>;

fn main() -> io::Result<()> {
    let canonicalise: Canonicalise = match std::env::args().nth(1).as_deref() {
        Some("serde_json_canonicalizer") => serde_json_canonicalizer::to_vec,
        Some("serde_jcs") => serde_jcs::to_vec,
        other => panic!("expected the name of a library, came {other:?}"),
    };
    let mut input = BufReader::with_capacity(1 << 16, io::stdin().lock());
    let mut output = BufWriter::with_capacity(1 << 16, io::stdout().lock());
    let mut document = Vec::new();
    loop {
        // Answers must not wait in the buffer while this waits for more documents.
        if input.buffer().is_empty() {
            output.flush()?;
            if input.fill_buf()?.is_empty() {
                return Ok(());
            }
        }
        let mut length = [0; 4];
        input.read_exact(&mut length)?;
        document.resize(u32::from_be_bytes(length) as usize, 0);
        input.read_exact(&mut document)?;
        // An `Err` is a refusal. A panic in the library is none: it ends the process, and that is seen.
        let answer = serde_json::from_slice(&document).and_then(|value| canonicalise(&value));
        let (status, body) = match answer {
            Ok(canonical) => (b'C', canonical),
            Err(refusal) => (b'R', refusal.to_string().into_bytes()),
        };
        output.write_all(&(body.len() as u32).to_be_bytes())?;
        output.write_all(&[status])?;
        output.write_all(&body)?;
    }
}
