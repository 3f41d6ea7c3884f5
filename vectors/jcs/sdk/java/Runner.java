// Frames for the Java canonicaliser.
//
// The pipeline that is judged: the bytes of the document go to JsonCanonicalizer as they are, which decodes and parses
// them itself (bytes that are not UTF-8 become U+FFFD there).

import java.io.BufferedInputStream;
import java.io.BufferedOutputStream;
import java.io.DataInputStream;
import java.io.DataOutputStream;
import java.io.FileDescriptor;
import java.io.FileOutputStream;
import java.io.IOException;
import java.nio.charset.StandardCharsets;
import org.erdtman.jcs.JsonCanonicalizer;

public final class Runner {
    public static void main(String[] arguments) throws IOException {
        DataInputStream in = new DataInputStream(new BufferedInputStream(System.in, 1 << 16));
        DataOutputStream out =
                new DataOutputStream(new BufferedOutputStream(new FileOutputStream(FileDescriptor.out), 1 << 16));
        // Nothing but frames may come out there.
        System.setOut(System.err);
        while (true) {
            // Answers must not wait in the buffer while this waits for more documents.
            if (in.available() == 0) {
                out.flush();
            }
            int first = in.read();
            if (first < 0) {
                out.flush();
                return;
            }
            int length = first << 24 | in.readUnsignedByte() << 16 | in.readUnsignedShort();
            byte[] document = new byte[length];
            in.readFully(document);
            char status = 'C';
            byte[] body;
            try {
                body = new JsonCanonicalizer(document).getEncodedUTF8();
            } catch (IOException refusal) {
                // The library's own refusals are all IOException. Anything else (StackOverflowError, any
                // RuntimeException) is none: the process ends, and that is seen.
                status = 'R';
                body = String.valueOf(refusal.getMessage()).getBytes(StandardCharsets.UTF_8);
            }
            out.writeInt(body.length);
            out.writeByte(status);
            out.write(body);
        }
    }
}
