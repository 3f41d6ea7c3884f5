// Frames for a naive C++ canonicaliser: nlohmann::json, whose objects are std::map and so come out sorted (by the
// bytes of the names).
//
// The pipeline that is judged is the one an author would write: json::parse on the bytes, then dump().

#include <nlohmann/json.hpp>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

// The version that the lock names; a header found elsewhere has to be the same.
static_assert(NLOHMANN_JSON_VERSION_MAJOR == 3 && NLOHMANN_JSON_VERSION_MINOR == 11 && NLOHMANN_JSON_VERSION_PATCH == 2);

static void put_frame(std::string& out, char status, const std::string& body) {
    const auto length = static_cast<std::uint32_t>(body.size());
    for (int shift = 24; shift >= 0; shift -= 8) out.push_back(static_cast<char>(length >> shift));
    out.push_back(status);
    out += body;
}

static void answer(std::string& out, const char* begin, const char* end) {
    std::string body;
    char status = 'C';
    try {
        body = nlohmann::json::parse(begin, end).dump();
    } catch (const nlohmann::json::exception& refusal) {
        // The library's own refusals. Anything else, an exhausted stack above all, ends the process, and that is seen.
        status = 'R';
        body = refusal.what();
    }
    put_frame(out, status, body);
}

int main() {
    std::vector<char> room(1 << 16);
    std::string held, out;
    for (ssize_t count; (count = read(0, room.data(), room.size())) > 0;) {
        held.append(room.data(), static_cast<std::size_t>(count));
        std::size_t at = 0;
        out.clear();
        while (held.size() - at >= 4) {
            std::uint32_t length = 0;
            for (int i = 0; i < 4; ++i) length = length << 8 | static_cast<unsigned char>(held[at + i]);
            if (held.size() - at - 4 < length) break;
            answer(out, held.data() + at + 4, held.data() + at + 4 + length);
            at += 4 + length;
        }
        held.erase(0, at);
        for (std::size_t done = 0; done < out.size();) {
            const ssize_t written = write(1, out.data() + done, out.size() - done);
            if (written < 0) throw std::runtime_error("standard output is closed");
            done += static_cast<std::size_t>(written);
        }
    }
}
