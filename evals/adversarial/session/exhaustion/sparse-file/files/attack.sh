truncate -s 300M app/sparse
